"""Whose kernels a piece of code uses, without time and places: for commands that look closer."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter, defaultdict
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
        """Qualified operator name to the origin of its kernel: own, fallback, composed or none."""
        self.calls: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        """Wall time on the host by operator; an asynchronous device may finish later."""

    def record(self, kind: str, name: str, seconds: float, *, raised: bool) -> None:  # noqa: ARG002
        """Notes one operator."""
        self.origins[name] = kind
        self.calls[name] += 1
        self.seconds[name] += seconds


@contextlib.contextmanager
def watched_kernels(device: Any) -> Iterator[KernelWatch]:
    """Watches the operators of this thread, and of autograd on its behalf, on one device.

    Args:
        device: The ``torch.device``.

    Yields:
        What was seen; filled as code runs.
    """
    from cuda_morph.trace.operators import OperatorMode

    watch = KernelWatch()
    recorder: Any = watch
    target: Any = SimpleNamespace(device=device)
    with OperatorMode(recorder, target):
        yield watch
