"""Failures on demand: the next work on the simulated device fails as it would on a real one.

Example:
    >>> from cuda_morph_sim import faults
    >>> with faults.raised_next("illegal_access"):  # doctest: +SKIP
    ...     torch.ones(2, device="sim") + 1

The error is a plain ``RuntimeError`` with the vendor's text, as an adapter passes it on from its
runtime library; that an activation turns it into PyTorch's classes is what is to be tried. The next
operator, copy or synchronisation raises it, on whichever device and thread.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cuda_morph.error_semantics import SEMANTICS
from cuda_morph.errors import BackendUnavailableError, SettingError
from cuda_morph_sim.adapter import loaded_pose
from cuda_morph_sim.dtype_limits import marked

if TYPE_CHECKING:
    from collections.abc import Iterator


def known() -> tuple[str, ...]:
    """List the classes of failure that can be raised here.

    Returns:
        Names such as ``out_of_memory``: those whose text the simulated adapter's plugin gives, or
        all for the plain device.
    """
    pose = loaded_pose()
    return tuple(sorted(SEMANTICS if pose is None else pose.personality.error_texts))


def raise_next(kind: str = "", *, text: str = "") -> None:
    """Let the next work on the device fail.

    Args:
        kind: A class of failure of `known`; the text is the simulated vendor's.
        text: The text itself, instead.

    Raises:
        SettingError: The class is not known here.
        BackendUnavailableError: The simulated device is not loaded.
    """
    _native().arm_fault(text or _text(kind))


def forget() -> int:
    """Take back failures that did not happen.

    Returns:
        How many there were.
    """
    return int(_native().disarm_faults())


@contextmanager
def raised_next(kind: str = "", *, text: str = "") -> Iterator[None]:
    """Let the next work on the device fail, in this block or not at all.

    Args:
        kind: A class of failure of `known`.
        text: The text itself, instead.

    Raises:
        SettingError: The class is not known here.
        BackendUnavailableError: The simulated device is not loaded.
    """
    raise_next(kind, text=text)
    try:
        yield
    finally:
        forget()


def _text(kind: str) -> str:
    if kind not in known():
        raise SettingError(
            f"There is no text for failures of the class {kind!r} here.",
            hint=f"Use one of {', '.join(known())}, or give the text itself.",
        )
    pose = loaded_pose()
    if pose is None:
        return f"SIM error: {SEMANTICS[kind].summary.rstrip('.').lower()} ({kind})"
    return marked(pose.personality.error_texts[kind])


def _native() -> Any:
    from cuda_morph_sim.loader import native_module

    native = native_module()
    if native is None:
        raise BackendUnavailableError(
            "The simulated device is not loaded.", hint="Activate it first."
        )
    return native
