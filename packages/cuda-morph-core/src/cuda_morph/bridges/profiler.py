"""``torch.profiler`` with CUDA activities: records the accelerator's instead.

Upstream: ``torch/autograd/profiler.py`` chooses the kind of trace by the device's name and takes
``cuda`` for an NVIDIA device, whose profiler this build does not have. The bridge makes the choice
that PyTorch makes for the accelerator under its own name. Can go when PyTorch asks for the device
type there.

``torch.autograd.profiler.emit_nvtx`` asks for PyTorch's NVTX observer, which only a CUDA build has;
its block runs without it, with a `StubWarning`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph.device.treatments import Notices
from cuda_morph.torch_facts import PRIVATE_USE_ONE

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.interception import Target
    from cuda_morph.patching import Journal


def apply(journal: Journal, target: Target) -> None:
    """Redirects the initialiser of the profiler that all spellings end in, and ``emit_nvtx``."""
    initialiser = _Initialiser(target)
    profiler = torch.autograd.profiler.profile
    initialiser.original = journal.redirect_function(vars(profiler)["__init__"], initialiser)
    nvtx = vars(torch.autograd.profiler.emit_nvtx)
    journal.redirect_function(nvtx["__enter__"], _NvtxEntry())
    journal.redirect_function(nvtx["__exit__"], _leave_nvtx)


class _Initialiser:
    """Stands for ``torch.autograd.profiler.profile.__init__``."""

    original: Callable[..., None]

    def __init__(self, target: Target) -> None:
        self._target = target

    def __call__(
        self, profiler: Any, *args: Any, use_cuda: bool = False, use_device: Any = None, **rest: Any
    ) -> None:
        if use_device not in ("cuda", self._target.device_type) and not use_cuda:
            self.original(profiler, *args, use_device=use_device, **rest)
            return
        self.original(profiler, *args, use_device=None, **rest)
        if self._target.type_id != PRIVATE_USE_ONE:
            return
        profiler.use_device = "cuda" if self._target.masked else self._target.device_type
        profiler.profiler_kind = torch._C._profiler.ProfilerState.KINETO_PRIVATEUSE1
        activity = torch.profiler.ProfilerActivity.PrivateUse1
        if activity in torch.profiler.supported_activities():
            profiler.kineto_activities.add(activity)


class _NvtxEntry:
    """Stands for ``torch.autograd.profiler.emit_nvtx.__enter__``."""

    def __init__(self) -> None:
        self._notices = Notices()

    def __call__(self, block: Any) -> Any:
        if not block.enabled:
            return None
        if block.entered:
            raise RuntimeError("NVTX annotation context manager is not reentrant")
        block.entered = True
        torch.cuda.synchronize()
        self._notices.give(
            "torch.autograd.profiler.emit_nvtx",
            "Operators are not marked for an NVIDIA tool; torch.profiler records them.",
        )
        return block


def _leave_nvtx(block: Any, *_error: Any) -> Any:
    """Stands for ``torch.autograd.profiler.emit_nvtx.__exit__``, which answers None when off."""
    if not block.enabled:
        return None
    torch.cuda.synchronize()
    return False
