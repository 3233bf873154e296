"""Whose kernels a piece of code uses, without time and places: for commands that look closer."""

from __future__ import annotations

import contextlib
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Thread(threading.local):
    def __init__(self) -> None:
        self.composing: set[str] = set()


class KernelWatch:
    """Takes the place of a trace's recorder."""

    running = True

    def __init__(self) -> None:
        self.thread = _Thread()
        self.origins: dict[str, str] = {}
        """Qualified operator name to the origin of its kernel."""

    def record(self, kind: str, name: str, _seconds: float, *, raised: bool) -> None:  # noqa: ARG002
        """Notes one operator."""
        self.origins[name] = kind


@contextlib.contextmanager
def watched_kernels(device: Any) -> Iterator[dict[str, str]]:
    """Watches the operators of this thread, and of autograd on its behalf, on one device.

    Args:
        device: The ``torch.device``.

    Yields:
        Qualified operator name to origin: own, fallback, composed or none; filled as code runs.
    """
    from cuda_morph.trace.operators import OperatorMode

    watch: Any = KernelWatch()
    target: Any = SimpleNamespace(device=device)
    with OperatorMode(watch, target):
        yield watch.origins
