"""``model.cuda()`` keeps its parameters the same objects, as it does on CUDA.

An optimizer made before ``model.cuda()``, and weights that two layers share, rely on it. Upstream:
``torch/nn/modules/module.py`` keeps a parameter's identity by assigning to ``param.data`` where the
two devices' tensors are "shallow copy compatible", a list in C++ that ends at the built-in devices;
for others it makes a new parameter, silently. It can also exchange the two tensors in place, the
official ``torch.utils.swap_tensors``, but asks for that with one switch for all modules and
devices. The bridge answers that question per parameter. Can go when PyTorch counts out-of-tree
devices as compatible.

``FullyShardedDataParallel(module, device_id=...)`` also assigns to ``param.data``, which raises
there (``torch/distributed/fsdp/_init_utils.py``); tensors are exchanged instead.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph.import_watch import after_import

if TYPE_CHECKING:
    from cuda_morph.patching import Journal

_OLDER_SHARDING = "torch.distributed.fsdp._init_utils"


def apply(journal: Journal) -> None:
    """Lets ``Module._apply`` exchange parameters that move to or from the accelerator."""
    module = torch.nn.modules.module
    original = module.is_traceable_wrapper_subclass

    def should_swap(applied: Any) -> bool:
        if original(applied):
            return True
        param = sys._getframe(1).f_locals.get("param")
        return (
            isinstance(param, torch.nn.Parameter)
            and param is not applied
            and not torch._has_compatible_shallow_copy_type(param, applied)
            and _can_be_swapped(param)
        )

    journal.update_mapping(vars(module), {"is_traceable_wrapper_subclass": should_swap})
    journal.on_rollback(after_import(_OLDER_SHARDING, lambda: _connect_older_sharding(journal)))


def _can_be_swapped(param: Any) -> bool:
    """What `torch.utils.swap_tensors` demands; elsewhere PyTorch's new parameter is the answer."""
    return not weakref.getweakrefs(param) and param._use_count() == 1


def _connect_older_sharding(journal: Journal) -> None:
    function = vars(sys.modules[_OLDER_SHARDING])["_move_states_to_device"]

    def move(params: list[Any], buffers: list[Any], device: Any) -> None:
        if device is None:
            original(params, buffers, device)
            return
        with torch.no_grad():
            for tensor in (*params, *buffers):
                _exchange(tensor, device)

    original = journal.redirect_function(function, move)


def _exchange(tensor: Any, device: Any) -> None:
    moved = tensor.to(device)
    if moved is tensor:
        return
    if isinstance(tensor, torch.nn.Parameter):
        moved = torch.nn.Parameter(moved, requires_grad=tensor.requires_grad)
        if tensor.grad is not None:
            moved.grad = tensor.grad.to(device)
    torch.utils.swap_tensors(tensor, moved)
