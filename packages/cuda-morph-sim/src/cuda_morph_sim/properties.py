"""What the simulated device says about itself, under CUDA's names."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

DEVICE_NAME = "cuda-morph simulated accelerator"
COMPUTE_CAPABILITY = (8, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceProperties:
    """Answers of ``get_device_properties``.

    Sizes and counts follow a mid-range accelerator so that launch heuristics that divide by them
    get sensible numbers; nothing is derived from them here.
    """

    name: str = DEVICE_NAME
    major: int = COMPUTE_CAPABILITY[0]
    minor: int = COMPUTE_CAPABILITY[1]
    total_memory: int
    multi_processor_count: int = 16
    max_threads_per_multi_processor: int = 2048
    max_threads_per_block: int = 1024
    warp_size: int = 32
    regs_per_multiprocessor: int = 65536
    shared_memory_per_block: int = 49152
    shared_memory_per_block_optin: int = 101376
    shared_memory_per_multiprocessor: int = 102400
    L2_cache_size: int = 4 << 20
    clock_rate: int = 1_000_000
    memory_clock_rate: int = 1_000_000
    memory_bus_width: int = 256
    is_integrated: bool = True
    is_multi_gpu_board: bool = False
    gcnArchName: str = "sim"  # noqa: N815 - CUDA's spelling
    pci_bus_id: int
    pci_device_id: int = 0
    pci_domain_id: int = 0
    uuid: uuid.UUID


def properties_of(index: int, total_memory: int) -> DeviceProperties:
    """Properties of one simulated device.

    Args:
        index: Which device.
        total_memory: Its present capacity in bytes.

    Returns:
        The properties; the identifier is the same in every process.
    """
    return DeviceProperties(
        total_memory=total_memory,
        pci_bus_id=index,
        uuid=uuid.uuid5(uuid.NAMESPACE_URL, f"cuda-morph-sim:{index}"),
    )


def properties_with(fields: Mapping[str, object], name: str, total_memory: int) -> Any:
    """Properties as an adapter gives them: with its own fields and no others.

    Args:
        fields: The fields that the adapter fills, with their values.
        name: The card's name.
        total_memory: The device's present capacity in bytes.

    Returns:
        An object with these fields; capacity and name are the device's own where they are fields.
    """
    present = {"name": name, "total_memory": total_memory}
    values = {key: present.get(key, value) for key, value in fields.items()}
    return AdapterProperties(values, name)


class AdapterProperties:
    """Properties of a simulated adapter's device.

    Args:
        values: The fields.
        name: The card's name, for the printed form.
    """

    def __init__(self, values: Mapping[str, object], name: str) -> None:
        self.__dict__.update(values)
        self.__dict__["_shown"] = name

    def __repr__(self) -> str:
        fields = (f"{key}={value!r}" for key, value in vars(self).items() if key[0] != "_")
        return f"DeviceProperties({', '.join(fields)}) of {self.__dict__['_shown']}"
