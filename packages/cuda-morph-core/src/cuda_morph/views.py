"""The view policy: which world a piece of code sees.

In the ``cuda`` view, user code and PyTorch see a CUDA machine, while packages that have their own
branch for the accelerator keep the native view. In the ``native`` view everybody sees the vendor's
device, and ``torch.cuda.is_available()`` is False so that libraries take their vendor branch.
The answer depends on the package of the calling frame, so it needs no state that an exception or
another thread could leave wrong.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING

from cuda_morph.torch_facts import INTERNAL_CUDA_READERS, NVIDIA_DRIVER_READERS

if TYPE_CHECKING:
    from types import FrameType

NATIVE = "native"
CUDA = "cuda"
VIEWS = (NATIVE, CUDA)

_log = logging.getLogger("cuda_morph")
_STDLIB = os.path.dirname(os.__file__)  # noqa: PTH120 - compared with raw co_filename strings
_SITE_PACKAGES = ("site-packages", "dist-packages")


def package_of(frame: FrameType | None) -> str:
    """Returns the top-level package that a frame's code belongs to, or an empty string."""
    name = frame.f_globals.get("__name__", "") if frame is not None else ""
    return str(name).partition(".")[0]


class ViewPolicy:
    """Answers, per calling frame, whether CUDA is to be seen.

    Args:
        view: ``native`` or ``cuda``.
        device_type: The accelerator's device type, for the notice.
        native_libraries: Top-level packages that always keep the native view.
    """

    def __init__(self, view: str, device_type: str, native_libraries: tuple[str, ...]) -> None:
        self.view = view
        self.device_type = device_type
        self.native_packages = frozenset(native_libraries)
        self._noticed = False

    @property
    def by_frame(self) -> bool:
        """Whether some packages see another world than the rest."""
        return self.view == CUDA and bool(self.native_packages)

    def frame_sees_cuda(self, frame: FrameType | None) -> bool:
        """Returns whether code running in `frame` sees a CUDA machine."""
        if self.view == CUDA:
            return package_of(frame) not in self.native_packages
        name = str(frame.f_globals.get("__name__", "")) if frame is not None else ""
        return name.startswith(INTERNAL_CUDA_READERS)

    def is_available(self) -> bool:
        """Stands for ``torch.cuda.is_available``; called through its swapped body."""
        # Above this function: wrappers of a trace, torch.cuda.is_available, the reader.
        frame = sys._getframe(1)
        while frame.f_back is not None and package_of(frame) == "cuda_morph":
            frame = frame.f_back
        frame = frame.f_back or frame
        if str(frame.f_globals.get("__name__", "")).startswith(NVIDIA_DRIVER_READERS):
            return False
        if self.frame_sees_cuda(frame):
            return True
        if self.view == NATIVE and not self._noticed and _is_user_code(frame):
            self._noticed = True
            _log.warning(
                "torch.cuda.is_available() is False in the native view (asked in %s:%d). The "
                "accelerator is %r: test torch.accelerator.is_available(), or activate the cuda "
                "view (CUDA_MORPH_VIEW=cuda) to run CUDA branches unchanged.",
                frame.f_code.co_filename,
                frame.f_lineno,
                self.device_type,
            )
        return False


def _is_user_code(frame: FrameType) -> bool:
    filename = frame.f_code.co_filename
    if filename.startswith(_STDLIB) or any(part in filename for part in _SITE_PACKAGES):
        return False
    return package_of(frame) not in {"torch", "cuda_morph"}
