"""Checkpoints: locations tagged ``cuda`` load onto the accelerator.

Official point: ``torch.serialization.register_package``. In the cuda view PyTorch's own CUDA
functions do it, because devices carry that name; in the native view this bridge does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

if TYPE_CHECKING:
    from cuda_morph.device.layer import LayerContext
    from cuda_morph.interception.tier import Target

_PRIORITY = 5
"""Before PyTorch's entry for CUDA, which has 20."""


def apply(context: LayerContext, target: Target) -> None:
    """Registers the location ``cuda[:N]`` unless devices already print as ``cuda``."""
    if target.masked:
        return
    count = context.runtime.device_count

    def restore(storage: Any, location: str) -> Any:
        if target.device_type == "cpu" and location.startswith("cpu:"):
            return storage  # str(torch.device("cuda:0")) where the index is kept (tier T1)
        if not location.startswith("cuda"):
            return None
        index = _index(location)
        if index is not None and index >= count():
            raise RuntimeError(
                f"Attempting to deserialize object on CUDA device {index} but "
                f"torch.cuda.device_count() is {count()}. Please use torch.load with "
                "map_location to map your storages to an existing device."
            )
        return _move(storage, location, target)

    registry = torch.serialization._package_registry
    before = list(registry)
    torch.serialization.register_package(_PRIORITY, lambda _storage: None, restore)

    def undo() -> None:
        registry[:] = before

    context.journal.on_rollback(undo)


def _index(location: str) -> int | None:
    _, _, index = location.partition(":")
    return int(index) if index.isdigit() else None


def _move(storage: Any, location: str, target: Target) -> Any:
    if target.device_type == "cpu":
        return storage
    return storage.to(device=torch.device(location))
