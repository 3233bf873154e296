"""Parts of ``torch.cuda`` that few programs use: their modules are imported at the first call."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph.import_watch import after_import

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.device.protocol import DeviceRuntime
    from cuda_morph.patching import Journal

_COMM = "torch.cuda.comm"
_COPIES = (
    "_broadcast",
    "_broadcast_out",
    "_broadcast_coalesced",
    "_scatter",
    "_scatter_out",
    "_gather",
    "_gather_out",
)
"""The functions of ``torch._C`` that `comm` has."""


def apply(journal: Journal, runtime: DeviceRuntime) -> None:
    """Supplies copies between devices, and the ranges of NVTX.

    Args:
        journal: Records the changes.
        runtime: Names the device type whose ordinals the callers pass.
    """
    journal.set_attribute(torch.cuda.nvtx, "_nvtx", _Ranges())
    journal.update_mapping(vars(torch._C), {name: _copy(runtime, name) for name in _COPIES})
    if runtime.device_type == "cpu":
        journal.on_rollback(after_import(_COMM, lambda: _redirect_sum(journal)))


def _copy(runtime: DeviceRuntime, name: str) -> Callable[..., Any]:
    def copy(*args: Any) -> Any:
        from cuda_morph.device import comm

        return comm.c_functions(runtime)[name](*args)

    return copy


def _redirect_sum(journal: Journal) -> None:
    """PyTorch's own sum over devices refuses tensors of the CPU."""
    from cuda_morph.device import comm

    # By name: the module is not yet an attribute of its package when it has just been executed.
    journal.redirect_function(sys.modules[_COMM].reduce_add, comm.reduce_add)


class _Ranges:
    """Stands where ``torch.cuda.nvtx`` expects the functions of the NVTX library."""

    def __getattr__(self, name: str) -> Any:
        from cuda_morph.device.nvtx import NvtxRanges

        self.__dict__["_ranges"] = ranges = self.__dict__.get("_ranges") or NvtxRanges()
        return getattr(ranges, name)
