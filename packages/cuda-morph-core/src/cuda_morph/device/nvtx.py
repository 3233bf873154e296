"""NVTX ranges, recorded as ranges of ``torch.profiler`` so that a trace shows them."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

_thread = threading.local()


class NvtxRanges:
    """Stands where ``torch.cuda.nvtx`` expects the functions of the NVTX library."""

    def __init__(self) -> None:
        self._open: dict[int, Any] = {}
        self._ids = itertools.count(1)

    @staticmethod
    def _stack() -> list[Any]:
        if not hasattr(_thread, "ranges"):
            _thread.ranges = []
        ranges: list[Any] = _thread.ranges
        return ranges

    def rangePushA(self, message: str) -> int:  # noqa: N802 - NVTX's name
        """Opens a nested range; returns its depth, starting with 0."""
        stack = self._stack()
        stack.append(torch.ops.profiler._record_function_enter_new(message))
        return len(stack) - 1

    def rangePop(self) -> int:  # noqa: N802
        """Closes the innermost range; returns its depth, or -2 without one, as NVTX does."""
        stack = self._stack()
        if not stack:
            return -2
        torch.ops.profiler._record_function_exit(stack.pop())
        return len(stack)

    def rangeStartA(self, message: str) -> int:  # noqa: N802
        """Opens a range that another thread may close; returns its id."""
        identity = next(self._ids)
        self._open[identity] = torch.ops.profiler._record_function_enter_new(message)
        return identity

    def rangeEnd(self, identity: int) -> None:  # noqa: N802
        """Closes the range with that id."""
        record = self._open.pop(identity, None)
        if record is not None:
            torch.ops.profiler._record_function_exit(record)

    def markA(self, message: str) -> None:  # noqa: N802
        """Records a moment as a range without length."""
        torch.ops.profiler._record_function_exit(
            torch.ops.profiler._record_function_enter_new(message)
        )

    def deviceRangeStart(self, message: str, _stream: int) -> int:  # noqa: N802
        """Opens a range; the stream is not told apart."""
        return self.rangeStartA(message)

    def deviceRangeEnd(self, identity: int, _stream: int) -> None:  # noqa: N802
        """Closes the range with that id."""
        self.rangeEnd(identity)
