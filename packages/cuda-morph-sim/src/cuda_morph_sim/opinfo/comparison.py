"""Whether a result on the device equals the result on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch  # noqa: TID253 - comparing tensors needs PyTorch by nature

UNINITIALISED = frozenset(
    {
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
    }
)
"""Operators whose contents mean nothing; only shape, dtype and device are compared."""


class DifferenceError(AssertionError):
    """The device's result differs from the CPU's."""


def to_device(value: Any, device: torch.device) -> Any:
    """Copy a structure of samples to a device.

    Args:
        value: Tensors, containers of tensors, devices and plain values.
        device: Where tensors go; a CPU device in the structure is replaced by it too.

    Returns:
        A structure of the same shape; tensors are fresh copies that keep ``requires_grad``.
    """
    if isinstance(value, torch.Tensor):
        copy = value.detach().clone().to(device)
        return copy.requires_grad_(value.requires_grad)
    if value == "cpu" or (isinstance(value, torch.device) and value.type == "cpu"):
        return device
    if isinstance(value, dict):
        return {key: to_device(item, device) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(to_device(item, device) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(to_device(item, device) for item in value)
    return value


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
