"""Device properties with every field that CUDA's have."""

from __future__ import annotations

from typing import Any

FIELDS: dict[str, Any] = {
    "name": "",
    "major": 0,
    "minor": 0,
    "total_memory": 0,
    # DataParallel divides one device's number by another's, as programs do.
    "multi_processor_count": 1,
    "is_integrated": 0,
    "is_multi_gpu_board": 0,
    "max_threads_per_multi_processor": 0,
    "max_threads_per_block": 0,
    "warp_size": 0,
    "regs_per_multiprocessor": 0,
    "shared_memory_per_block": 0,
    "shared_memory_per_block_optin": 0,
    "shared_memory_per_multiprocessor": 0,
    "L2_cache_size": 0,
    "clock_rate": 0,
    "memory_clock_rate": 0,
    "memory_bus_width": 0,
    "gcnArchName": "",
    "uuid": "",
    "pci_bus_id": 0,
    "pci_device_id": 0,
    "pci_domain_id": 0,
}
"""Fields of ``torch._C._CudaDeviceProperties`` (torch/csrc/cuda/Module.cpp) and the value that
says "not known" for each, so that code which prints or compares them does not stop."""


class CudaDeviceProperties:
    """Answers CUDA's field names from a vendor's own properties object.

    Args:
        source: The vendor's properties; its attributes win wherever the name is the same.
        known: Values for CUDA's names that the vendor spells differently or lacks.
    """

    def __init__(self, source: object, **known: Any) -> None:
        self._source = source
        self._known = known

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        known = self.__dict__.get("_known", {})
        if name in known:
            return known[name]
        source = self.__dict__.get("_source")
        if source is not None and hasattr(source, name):
            return getattr(source, name)
        if name in FIELDS:
            return FIELDS[name]
        raise AttributeError(f"device properties have no field {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *FIELDS, *self._known})

    def __repr__(self) -> str:
        return (
            f"CudaDeviceProperties(name={self.name!r}, major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // (1024 * 1024)}MB, "
            f"multi_processor_count={self.multi_processor_count})"
        )
