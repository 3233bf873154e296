"""Typed storages: the classes of ``torch.cuda`` mean the accelerator's device type.

PyTorch takes a storage class's device from the name of its module, ``cuda``. Where devices keep
their own name, ``isinstance(storage, torch.cuda.FloatStorage)`` would compare with the wrong one,
and ``storage.is_cuda`` would deny what ``tensor.is_cuda`` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

if TYPE_CHECKING:
    from cuda_morph.interception.tier import Target
    from cuda_morph.patching import Journal


def apply(journal: Journal, target: Target) -> None:
    """Redirects look-up and question unless devices already print as ``cuda``."""
    if target.masked:
        return
    if target.device_type != "cpu":  # PyTorch refuses to share storages that say they are CUDA's
        accelerated = {target.device_type, "cuda"}

        def is_cuda(storage: Any) -> bool:
            return storage.device.type in accelerated

        journal.redirect_function(vars(torch.UntypedStorage)["is_cuda"].fget, is_cuda)

    def device_of_module(name: str) -> str:
        device_type: str = original(name)
        return target.device_type if device_type == "cuda" else device_type

    original = journal.redirect_function(torch.storage._get_device_from_module, device_of_module)
