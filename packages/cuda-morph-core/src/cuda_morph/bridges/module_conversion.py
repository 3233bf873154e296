"""``model.cuda()`` keeps its parameters the same objects, as it does on CUDA.

An optimizer made before ``model.cuda()``, and weights that two layers share, rely on it. Upstream:
``torch/nn/modules/module.py`` keeps a parameter's identity by assigning to ``param.data`` where the
two devices' tensors are "shallow copy compatible", a list in C++ that ends at the built-in devices;
for others it makes a new parameter, silently. It can also exchange the two tensors in place, the
official ``torch.utils.swap_tensors``, but asks for that with one switch for all modules and
devices. The bridge answers that question per parameter. Can go when PyTorch counts out-of-tree
devices as compatible.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

if TYPE_CHECKING:
    from cuda_morph.patching import Journal


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


def _can_be_swapped(param: Any) -> bool:
    """What `torch.utils.swap_tensors` demands; elsewhere PyTorch's new parameter is the answer."""
    return not weakref.getweakrefs(param) and param._use_count() == 1
