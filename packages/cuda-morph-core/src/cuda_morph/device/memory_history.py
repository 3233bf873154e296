"""The allocator's history and snapshot: valid, and empty, since the accelerator keeps none.

Programs turn the history on, train, and dump a pickle for PyTorch's memory viewer. They run; the
viewer opens the file and shows no blocks; the stub's notice says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.device.protocol import DeviceRuntime

_HOST_KINDS = ("allocations", "allocated_bytes", "active_requests", "active_bytes")
_MOMENTS = ("current", "peak", "allocated", "freed")
_TIMES = ("host_alloc_time", "host_free_time")
_TIME_MOMENTS = ("total", "max", "min", "count", "avg")


def c_functions(runtime: DeviceRuntime) -> dict[str, Callable[..., Any]]:
    """Returns the functions by their names in ``torch._C``.

    Args:
        runtime: Says how many devices the traces are for.
    """
    metadata = {"text": ""}

    def set_metadata(text: str) -> None:
        metadata["text"] = text

    def snapshot(_selection: object = None) -> dict[str, Any]:
        return {
            "segments": [],
            "device_traces": [[] for _ in range(runtime.device_count())],
            "allocator_settings": {},
            "external_annotations": [],
        }

    def record(*_args: object, **_kwargs: object) -> None:
        """Accepts the setting."""

    return {
        "_cuda_memorySnapshot": snapshot,
        "_cuda_record_memory_history": record,
        "_cuda_record_memory_history_legacy": record,
        "_cuda_isHistoryEnabled": lambda: False,
        "_cuda_allocationTraceback": lambda _pointer: None,
        "_cuda_setMemoryMetadata": set_metadata,
        "_cuda_getMemoryMetadata": lambda: metadata["text"],
        "_cuda_hostMemoryStats": host_statistics,
    }


def host_statistics() -> dict[str, Any]:
    """Returns the figures of the pinned-memory allocator: zero, as nobody counts them here."""
    figures: dict[str, Any] = {kind: dict.fromkeys(_MOMENTS, 0) for kind in _HOST_KINDS}
    figures.update({kind: dict.fromkeys(_TIME_MOMENTS, 0) for kind in _TIMES})
    figures.update(num_host_alloc=0, num_host_free=0)
    return figures
