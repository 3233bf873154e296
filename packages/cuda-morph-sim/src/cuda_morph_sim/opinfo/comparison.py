"""Whether a result on the device equals the result on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch  # noqa: TID253 - comparing tensors needs PyTorch by nature


class DifferenceError(AssertionError):
    """The device's result differs from the CPU's."""


def check_equal(actual: Any, expected: Any, *, contents: bool = True) -> None:
    """Compare results structure by structure.

    Args:
        actual: The device's result.
        expected: The CPU's result.
        contents: Compare values too, not only shape, dtype and device.

    Raises:
        DifferenceError: They differ.
    """
    if isinstance(expected, torch.Tensor):
        _check_tensor(actual, expected, contents)
    elif isinstance(expected, Sequence) and not isinstance(expected, str):
        if len(actual) != len(expected):
            raise DifferenceError(f"{len(actual)} results, the CPU gives {len(expected)}")
        for one, other in zip(actual, expected, strict=True):
            check_equal(one, other, contents=contents)
    elif isinstance(expected, torch.device):
        pass
    elif actual != expected and not (actual != actual and expected != expected):  # noqa: PLR0124
        raise DifferenceError(f"{actual!r}, the CPU gives {expected!r}")


def _check_tensor(actual: Any, expected: torch.Tensor, contents: bool) -> None:
    if not isinstance(actual, torch.Tensor):
        raise DifferenceError(f"a {type(actual).__name__}, the CPU gives a tensor")
    if actual.device.type == "cpu":
        raise DifferenceError("the result is on the CPU")
    for attribute in ("shape", "dtype", "layout", "requires_grad"):
        mine, theirs = getattr(actual, attribute), getattr(expected, attribute)
        if mine != theirs:
            raise DifferenceError(f"{attribute} {mine}, the CPU gives {theirs}")
    if not contents:
        return
    try:
        torch.testing.assert_close(
            actual.detach().cpu(), expected.detach(), equal_nan=True, check_stride=False
        )
    except AssertionError as error:
        raise DifferenceError(str(error).splitlines()[0]) from None
