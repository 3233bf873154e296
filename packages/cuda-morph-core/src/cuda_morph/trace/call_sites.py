"""Finding the line of the user's program that a call came from."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

Site = tuple[str, int]
"""File, as Python names it, and line."""

NO_SITE: Site = ("(no Python frame of the program)", 0)
"""Stands for calls from threads that C++ started, when it is not known what for."""

_STDLIB = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120 - compared with raw co_filename
_INSTALLED = ("site-packages", "dist-packages")
_BACKWARD = "_engine_run_backward"
"""Function of torch.autograd.graph that waits while autograd's threads work."""


class SiteFinder:
    """Finds the innermost frame that belongs neither to PyTorch nor to its adapters.

    Args:
        adapters: Top-level packages, beside PyTorch and cuda-morph, whose frames are passed over.
    """

    def __init__(self, adapters: frozenset[str] = frozenset()) -> None:
        self._passed_over = adapters | {"torch", "functorch"}

    def find(self, frame: FrameType | None) -> Site:
        """Returns the place of the user's code that is running in or above `frame`."""
        found = self._user_frame(frame) or self._backward_frame()
        return (found.f_code.co_filename, found.f_lineno) if found else NO_SITE

    def _user_frame(self, frame: FrameType | None) -> FrameType | None:
        while frame is not None and self._is_foreign(frame):
            frame = frame.f_back
        return frame

    def _is_foreign(self, frame: FrameType) -> bool:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in self._passed_over or package.startswith("cuda_morph"):
            return True
        filename = frame.f_code.co_filename
        if filename.startswith("<"):  # generated code, unless it is what the user typed
            return frame.f_globals.get("__name__") != "__main__"
        return filename.startswith(_STDLIB) and not any(part in filename for part in _INSTALLED)

    def _backward_frame(self) -> FrameType | None:
        """Returns the frame that waits for autograd, if it is clear which one it is.

        Operators of a backward pass run in autograd's own threads, which have no Python frames.
        """
        waiting = []
        for frame in sys._current_frames().values():
            above: FrameType | None = frame
            while above is not None and above.f_code.co_name != _BACKWARD:
                above = above.f_back
            if above is not None:
                waiting.append(above)
        return self._user_frame(waiting[0]) if len(waiting) == 1 else None
