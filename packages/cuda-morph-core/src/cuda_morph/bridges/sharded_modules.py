"""``FullyShardedDataParallel(module, device_id=...)`` moves a module from the CPU, as on CUDA.

Upstream: ``torch/distributed/fsdp/_init_utils.py`` assigns to ``param.data``, which PyTorch refuses
between the CPU and an out-of-tree device (see `module_conversion`). The bridge exchanges the two
tensors instead. Can go when PyTorch counts out-of-tree devices as compatible.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph.import_watch import after_import
from cuda_morph.torch_facts import PRIVATE_USE_ONE

if TYPE_CHECKING:
    from cuda_morph.interception.tier import Target
    from cuda_morph.patching import Journal

_MODULE = "torch.distributed.fsdp._init_utils"


def apply(journal: Journal, target: Target) -> None:
    """Lets the older sharding move parameters to an out-of-tree device, once it is imported."""
    if target.type_id != PRIVATE_USE_ONE:
        return

    def connect() -> None:
        function = vars(sys.modules[_MODULE])["_move_states_to_device"]

        def move(params: list[Any], buffers: list[Any], device: Any) -> None:
            if device is None:
                original(params, buffers, device)
                return
            with torch.no_grad():
                for tensor in (*params, *buffers):
                    _exchange(tensor, device)

        original = journal.redirect_function(function, move)

    journal.on_rollback(after_import(_MODULE, connect))


def _exchange(tensor: Any, device: Any) -> None:
    moved = tensor.to(device)
    if moved is tensor:
        return
    if isinstance(tensor, torch.nn.Parameter):
        moved = torch.nn.Parameter(moved, requires_grad=tensor.requires_grad)
        if tensor.grad is not None:
            moved.grad = tensor.grad.to(device)
    torch.utils.swap_tensors(tensor, moved)
