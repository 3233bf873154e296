"""What checks expect of devices and errors, said once."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.registry import CheckFailed, require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor

    from cuda_morph_conformance.subject import Subject


def shown_type(subject: Subject) -> str:
    """Returns the device type that code sees for ``cuda``; the CPU keeps its name in all views."""
    masked = subject.view == "cuda" and subject.device_type != "cpu"
    return "cuda" if masked else subject.device_type


def shown(subject: Subject, index: int = 0) -> str:
    """Returns how the device of a tensor prints."""
    kind = shown_type(subject)
    return kind if kind == "cpu" else f"{kind}:{index}"


def require_on(tensor: Tensor, subject: Subject, what: str, *, index: int = 0) -> None:
    """Fail the running check unless a tensor is on one of the accelerator's devices.

    Args:
        tensor: Any tensor.
        subject: The plugin, whose view decides what the device is called.
        what: How the tensor was made, for the message.
        index: Number of the device.

    Raises:
        CheckFailed: It is elsewhere, or ``is_cuda`` is false.
    """
    expected = shown(subject, index)
    seen = str(tensor.device)
    require(seen == expected, f"{what} gave a tensor on {seen}, expected {expected}")
    require(tensor.is_cuda, f"{what} gave a tensor whose is_cuda is {tensor.is_cuda}")


def require_equal(seen: object, expected: object, what: str) -> None:
    """Fail the running check unless two plain values are equal.

    Args:
        seen: What there is.
        expected: What there should be.
        what: What is compared, for the message.

    Raises:
        CheckFailed: They differ.
    """
    require(seen == expected, f"{what}: {seen!r}, expected {expected!r}")


def require_raises(
    errors: type[BaseException] | tuple[type[BaseException], ...],
    call: Callable[..., Any],
    *args: Any,
    what: str,
) -> str:
    """Fail the running check unless a call raises one of the expected errors.

    Args:
        errors: The class, or classes, one of which is right.
        call: What to call.
        *args: Its arguments.
        what: What is attempted, for the message.

    Returns:
        The text of the error.

    Raises:
        CheckFailed: It returned, or raised something else.
    """
    try:
        result = call(*args)
    except errors as error:
        return str(error)
    except Exception as error:
        expected = errors.__name__ if isinstance(errors, type) else errors[0].__name__
        text = f"{type(error).__name__}: {str(error)[:160]}"
        raise CheckFailed(f"{what} raised {text}; expected {expected}") from error
    raise CheckFailed(f"{what} did not raise, it returned {str(result)[:100]}")


@contextmanager
def same_device() -> Iterator[None]:
    """Makes the device that is current now current again afterwards."""
    import torch

    before = torch.cuda.current_device()
    try:
        yield
    finally:
        torch.cuda.set_device(before)


@contextmanager
def same_random_numbers() -> Iterator[None]:
    """Puts back the random state of the CPU and of all devices afterwards."""
    import torch

    host, states = torch.get_rng_state(), torch.cuda.get_rng_state_all()
    try:
        yield
    finally:
        torch.cuda.set_rng_state_all(states)
        torch.set_rng_state(host)
