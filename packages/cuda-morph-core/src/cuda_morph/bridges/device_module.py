"""What PyTorch's device-neutral code asks of the adapter's module and this adapter lacks.

``torch.autocast``, ``torch.manual_seed``, activation checkpoints, ``DataParallel`` and sharding
take ``torch.<device type>`` and call functions of it; no list says which an adapter must have.
A missing one is answered as ``torch.cuda`` answers it; what the adapter has stays its own.
Upstream: ``torch/amp/autocast_mode.py``, ``torch/random.py``, ``torch/utils/checkpoint.py``. Can go
when PyTorch asks ``torch.accelerator`` everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

if TYPE_CHECKING:
    from cuda_morph.device.layer import LayerContext
    from cuda_morph.device.protocol import DeviceRuntime
    from cuda_morph.interception import Target

_LIKE_CUDA = (
    "Event",
    "Stream",
    "current_device",
    "current_stream",
    "device",
    "device_count",
    "empty_cache",
    "manual_seed_all",
    "set_device",
    "stream",
    "synchronize",
)
"""Names whose answers under ``torch.cuda`` are about the accelerator while this lasts. Those from
which `cuda_morph.device.generators` makes up generators are not among them."""


def apply(context: LayerContext, target: Target) -> None:
    """Supplies the missing names of an out-of-tree device's module."""
    module = getattr(torch, target.device_type, None)
    if module is None:
        return
    present = vars(module)
    missing = {
        name: answer
        for name, answer in _answers(context.runtime).items()
        # A module may answer through its own __getattr__.
        if name not in present and not hasattr(module, name)
    }
    if missing:
        context.journal.update_mapping(present, missing)


def _answers(runtime: DeviceRuntime) -> dict[str, Any]:
    dtypes = runtime.autocast_dtypes()
    return {
        **{name: getattr(torch.cuda, name) for name in _LIKE_CUDA},
        "get_amp_supported_dtype": lambda: list(dtypes),
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        # Checkpoints keep the device's random numbers only where they read this as true.
        "_initialized": True,
        "_is_in_bad_fork": lambda: False,
    }
