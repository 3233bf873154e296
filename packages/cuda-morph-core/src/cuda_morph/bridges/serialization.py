"""Checkpoints: locations tagged ``cuda`` load onto the accelerator.

Official point: ``torch.serialization.register_package``. In the cuda view PyTorch's own CUDA
functions do it, because devices carry that name; in the native view this bridge does. Saving
writes the accelerator's own name there, or ``cuda:N`` with ``CUDA_MORPH_PORTABLE_CHECKPOINTS=1``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph import environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.device.layer import LayerContext
    from cuda_morph.interception import Target

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
    tag = _portable_tag(target) if _portable(target) else _no_tag
    torch.serialization.register_package(_PRIORITY, tag, restore)

    def undo() -> None:
        registry[:] = before

    context.journal.on_rollback(undo)


def _portable(target: Target) -> bool:
    return target.device_type != "cpu" and environment.read_flag(environment.PORTABLE_CHECKPOINTS)


def _no_tag(_storage: Any) -> None:
    """Leaves the location to the entries that follow: the accelerator's own name."""


def _portable_tag(target: Target) -> Callable[[Any], str | None]:
    def tag(storage: Any) -> str | None:
        if storage.device.type != target.device_type:
            return None
        return f"cuda:{storage.device.index or 0}"

    return tag


def _index(location: str) -> int | None:
    _, _, index = location.partition(":")
    return int(index) if index.isdigit() else None


def _move(storage: Any, location: str, target: Target) -> Any:
    if target.device_type == "cpu":
        return storage
    return storage.to(device=torch.device(location))
