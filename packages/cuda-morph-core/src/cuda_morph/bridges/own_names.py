"""Places where PyTorch compares a device's name with ``cuda``, for devices that keep their own.

In the masked cuda view devices print as ``cuda`` and nothing here is needed. Each can go when
PyTorch compares devices there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph.torch_facts import PRIVATE_USE_ONE

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.interception import Target
    from cuda_morph.patching import Journal


def apply(journal: Journal, target: Target) -> None:
    """Redirects the comparisons, for targets that are not masked."""
    _typed_storages(journal, target)
    _casts(journal, target)
    if target.type_id == PRIVATE_USE_ONE:
        _dlpack_devices(journal, target)


def _typed_storages(journal: Journal, target: Target) -> None:
    """The storage classes of ``torch.cuda`` mean the accelerator's device type.

    PyTorch takes a storage class's device from the name of its module, so that
    ``isinstance(storage, torch.cuda.FloatStorage)`` would compare with the wrong one, and
    ``storage.is_cuda`` would deny what ``tensor.is_cuda`` says.
    """
    if target.device_type != "cpu":  # PyTorch refuses to share storages that say they are CUDA's
        accelerated = {target.device_type, "cuda"}

        def is_cuda(storage: Any) -> bool:
            return storage.device.type in accelerated

        journal.redirect_function(vars(torch.UntypedStorage)["is_cuda"].fget, is_cuda)

    def device_of_module(name: str) -> str:
        device_type: str = original(name)
        return target.device_type if device_type == "cuda" else device_type

    original = journal.redirect_function(torch.storage._get_device_from_module, device_of_module)


def _casts(journal: Journal, target: Target) -> None:
    """``custom_fwd(device_type="cuda", cast_inputs=...)`` casts the accelerator's tensors.

    Upstream: ``torch/amp/autocast_mode.py`` compares each tensor's device type with the given name,
    so tensors of another name would silently not be cast.
    """
    cast = _Cast(target.device_type)
    cast.original = journal.redirect_function(torch.amp.autocast_mode._cast, cast)


class _Cast:
    """Stands for ``torch.amp.autocast_mode._cast``."""

    original: Callable[..., Any]

    def __init__(self, device_type: str) -> None:
        self._device_type = device_type

    def __call__(self, value: Any, device_type: str, dtype: Any) -> Any:
        return self.original(
            value, self._device_type if device_type == "cuda" else device_type, dtype
        )


def _dlpack_devices(journal: Journal, target: Target) -> None:
    """The accelerator's tensors say by DLPack which kind of device they are on.

    Upstream: ``torch.Tensor.__dlpack_device__`` knows the out-of-tree slot only by its first name,
    ``privateuse1``; every adapter renames it. PyTorch's C code makes and reads the capsules.
    """

    def dlpack_device(tensor: Any) -> tuple[Any, int]:
        device = tensor.device
        if device.type != target.device_type:
            kind: tuple[Any, int] = original(tensor)
            return kind
        from torch.utils.dlpack import DLDeviceType

        return DLDeviceType.kDLExtDev, int(device.index or 0)

    original = journal.redirect_function(vars(torch.Tensor)["__dlpack_device__"], dlpack_device)
