"""Device runtime of the ``cpu`` backend: one device, no queues, the process's own memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph.device import host_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cuda_morph.device.protocol import DeviceArgument

_STATUS = Path("/proc/self/status")
_MEMINFO = Path("/proc/meminfo")
_CLEAR_REFS = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # proc(5): resets the peak resident set size


class CpuRuntime:
    """Answers the device protocol on the host.

    Memory figures are the resident size of the process: PyTorch's CPU allocator keeps no counts.

    Args:
        compute_capability: What ``get_device_capability`` answers.
    """

    device_type = "cpu"
    stream_class: type = host_stream.HostStream
    event_class: type = host_stream.HostEvent

    def __init__(self, compute_capability: tuple[int, int] = (8, 0)) -> None:
        self.compute_capability = compute_capability

    def index_of(self, device: DeviceArgument) -> int:
        """See `DeviceRuntime.index_of`."""
        if isinstance(device, int) and device > 0:
            self._check(device)
        return 0

    @staticmethod
    def _check(index: int) -> None:
        if index > 0:
            raise RuntimeError(
                f"CUDA error: invalid device ordinal (device {index}; the cpu backend of "
                "cuda-morph has one device, number 0)"
            )

    def device_count(self) -> int:
        """See `DeviceRuntime.device_count`."""
        return 1

    def current_device(self) -> int:
        """See `DeviceRuntime.current_device`."""
        return 0

    def set_device(self, index: int) -> None:
        """See `DeviceRuntime.set_device`."""
        self._check(index)

    def exchange_device(self, index: int) -> int:
        """See `DeviceRuntime.exchange_device`."""
        self._check(index)
        return -1 if index < 0 else 0

    def synchronize(self, device: DeviceArgument = None) -> None:
        """See `DeviceRuntime.synchronize`."""
        self.index_of(device)

    def current_stream(self, device: DeviceArgument = None) -> Any:
        """See `DeviceRuntime.current_stream`."""
        self.index_of(device)
        return host_stream.current_stream()

    def default_stream(self, device: DeviceArgument = None) -> Any:
        """See `DeviceRuntime.default_stream`."""
        self.index_of(device)
        return host_stream.default_stream()

    def set_stream(self, stream: Any) -> None:
        """See `DeviceRuntime.set_stream`."""
        host_stream.set_current_stream(stream)

    def memory_stats(self, index: int) -> Mapping[str, int]:
        """See `DeviceRuntime.memory_stats`."""
        self._check(index)
        current, peak = _resident_bytes(), _peak_resident_bytes()
        return {
            f"{kind}_bytes.all.{moment}": value
            for kind in ("allocated", "reserved", "active")
            for moment, value in (("current", current), ("peak", peak))
        }

    def memory_reader(self, kind: str, moment: str) -> Callable[[DeviceArgument], int]:
        """See `DeviceRuntime.memory_reader`."""
        del kind
        peak = moment == "peak"
        figure = _peak_resident_bytes if peak else _resident_bytes

        def read(device: DeviceArgument) -> int:
            self.index_of(device)
            return figure()

        return read

    def reset_peak_memory(self, device: DeviceArgument = None) -> None:
        """See `DeviceRuntime.reset_peak_memory`."""
        self.index_of(device)
        _reset_peak_resident_bytes()

    def reset_accumulated_memory(self, device: DeviceArgument = None) -> None:
        """See `DeviceRuntime.reset_accumulated_memory`."""
        self.index_of(device)

    def memory_info(self, device: DeviceArgument = None) -> tuple[int, int]:
        """See `DeviceRuntime.memory_info`."""
        self.index_of(device)
        return _available_and_total_bytes()

    def empty_cache(self) -> None:
        """See `DeviceRuntime.empty_cache`."""

    def properties(self, index: int) -> Any:
        """See `DeviceRuntime.properties`."""
        from cuda_morph.device.properties import CudaDeviceProperties

        self._check(index)
        major, minor = self.compute_capability
        return CudaDeviceProperties(
            None,
            name="CPU (cuda-morph fallback)",
            major=major,
            minor=minor,
            total_memory=_available_and_total_bytes()[1],
            multi_processor_count=os.cpu_count() or 1,
            is_integrated=1,
        )

    def default_generators(self) -> tuple[Any, ...]:
        """See `DeviceRuntime.default_generators`."""
        return (torch.default_generator,)

    def supports_bf16(self) -> bool:
        """See `DeviceRuntime.supports_bf16`."""
        return True

    def autocast_dtypes(self) -> list[Any]:
        """See `DeviceRuntime.autocast_dtypes`."""
        return [torch.bfloat16, torch.float16]


def _kilobytes(path: Path, field: str) -> int:
    try:
        for line in path.read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return 0
    return 0


def _resident_bytes() -> int:
    """Returns the resident set size of this process in bytes; 0 where it cannot be read."""
    return _kilobytes(_STATUS, "VmRSS:")


def _peak_resident_bytes() -> int:
    """Returns the largest resident set size since the last reset, in bytes."""
    peak = _kilobytes(_STATUS, "VmHWM:")
    if peak:
        return peak
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _reset_peak_resident_bytes() -> None:
    """Restarts the peak from the present size, where the kernel allows it."""
    try:
        _CLEAR_REFS.write_text(_RESET_PEAK)
    except OSError:
        return


def _available_and_total_bytes() -> tuple[int, int]:
    """Returns the machine's available and total memory in bytes."""
    total = _kilobytes(_MEMINFO, "MemTotal:")
    if not total:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return _kilobytes(_MEMINFO, "MemAvailable:"), total
