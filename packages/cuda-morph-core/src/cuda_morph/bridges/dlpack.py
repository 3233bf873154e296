"""DLPack in the native view: the accelerator's tensors say which kind of device they are on.

Upstream: ``torch.Tensor.__dlpack_device__`` knows the out-of-tree slot only by its first name,
``privateuse1``; every adapter renames it. PyTorch's C code makes and reads the capsules all right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph.torch_facts import PRIVATE_USE_ONE

if TYPE_CHECKING:
    from cuda_morph.interception.tier import Target
    from cuda_morph.patching import Journal


def apply(journal: Journal, target: Target) -> None:
    """Redirects the method for out-of-tree devices that keep their own name."""
    if target.masked or target.type_id != PRIVATE_USE_ONE:
        return

    def dlpack_device(tensor: Any) -> tuple[Any, int]:
        device = tensor.device
        if device.type != target.device_type:
            kind: tuple[Any, int] = original(tensor)
            return kind
        from torch.utils.dlpack import DLDeviceType

        return DLDeviceType.kDLExtDev, int(device.index or 0)

    original = journal.redirect_function(vars(torch.Tensor)["__dlpack_device__"], dlpack_device)
