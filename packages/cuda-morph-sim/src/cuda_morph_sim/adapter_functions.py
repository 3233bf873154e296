"""What an adapter's functions mean on the simulated device, by their usual names.

`device_module` gives the names of ``torch.cuda`` that the device itself has. Adapters have more:
deprecated names, private ones that libraries use, and those that ask what a card can do.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded by the loader only, when torch already is

from cuda_morph_sim.device_module import device_functions
from cuda_morph_sim.properties import properties_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph_sim.pose import Pose

Meanings = dict[str, Any]

_ASSUMED_CLOCK_HZ = 1.0e9
"""Cycles per second by which ``_sleep`` is turned into time, as cuda-morph does for CUDA's."""


def meanings(pose: Pose, native: Any, stream_class: type) -> Meanings:
    """Return what the simulated device can do, by name; the adapter may have fewer names.

    Args:
        pose: The plugin's records.
        native: The native half of the device.
        stream_class: The adapter's class of streams.

    Returns:
        Functions, classes and constants.
    """
    base = device_functions(native)
    return {
        **base,
        **_identity(pose, native),
        **_memory(base),
        **_state(native, base),
        **_autocast(pose),
        **_private(pose, native, base),
        **_streams(native, stream_class),
        "OutOfMemoryError": torch.OutOfMemoryError,
        "AcceleratorError": torch.AcceleratorError,
        "has_half": True,
    }


def _nothing() -> list[Any]:
    return []


def _identity(pose: Pose, native: Any) -> Meanings:
    personality = pose.personality

    def get_device_properties(device: Any = None) -> Any:
        index = native.index_of(device)
        return properties_with(
            personality.properties, pose.device_name, native.mem_get_info(index)[1]
        )

    def get_device_name(device: Any = None) -> str:
        native.index_of(device)
        return pose.device_name

    def get_device_capability(device: Any = None) -> object:
        native.index_of(device)
        return personality.capability

    def is_bf16_supported(including_emulation: bool = True) -> bool:  # noqa: ARG001 - torch.cuda's
        return "bfloat16" not in personality.absent_dtypes

    def is_fp16_supported() -> bool:
        return "float16" not in personality.absent_dtypes

    return {
        "get_device_properties": get_device_properties,
        "get_device_name": get_device_name,
        "get_device_capability": get_device_capability,
        "is_bf16_supported": is_bf16_supported,
        "is_fp16_supported": is_fp16_supported,
        "is_tf32_supported": lambda: False,
        "get_arch_list": _nothing,
        "get_gencode_flags": lambda: "",
    }


def _memory(base: Meanings) -> Meanings:
    def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
        nested: dict[str, Any] = {}
        for key, value in base["memory_stats"](device).items():
            *folders, last = key.split(".")
            place = nested
            for folder in folders:
                place = place.setdefault(folder, {})
            place[last] = value
        return nested

    def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
        stats = base["memory_stats"](device)
        shown = [key for key in stats if not abbreviated or key.endswith(".current")]
        return "\n".join(f"{key}: {stats[key]}" for key in shown)

    def device_memory_used(device: Any = None) -> int:
        free, total = base["mem_get_info"](device)
        return int(total - free)

    return {
        "memory_cached": base["memory_reserved"],
        "max_memory_cached": base["max_memory_reserved"],
        "reset_max_memory_allocated": base["reset_peak_memory_stats"],
        "reset_max_memory_cached": base["reset_peak_memory_stats"],
        "memory_stats_as_nested_dict": memory_stats_as_nested_dict,
        "memory_summary": memory_summary,
        "memory_snapshot": _nothing,
        "device_memory_used": device_memory_used,
        "get_allocator_backend": lambda: "native",
        "ipc_collect": lambda: None,
    }


def _state(native: Any, base: Meanings) -> Meanings:
    kept = {"sync_debug_mode": 0}
    fractions: dict[int, float] = {}

    def set_device(device: Any) -> None:
        native.set_device(device)

    def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
        native.set_per_process_memory_fraction(fraction, device)
        fractions[native.index_of(device)] = fraction

    def get_per_process_memory_fraction(device: Any = None) -> float:
        return fractions.get(native.index_of(device), 1.0)

    def can_device_access_peer(device: Any, peer_device: Any) -> bool:
        return bool(native.index_of(device) != native.index_of(peer_device))

    def set_sync_debug_mode(debug_mode: int | str) -> None:
        names = ("default", "warn", "error")
        number = names.index(debug_mode) if isinstance(debug_mode, str) else debug_mode
        kept["sync_debug_mode"] = number

    def get_default_generator(device: Any = None) -> torch.Generator:
        generator: torch.Generator = base["default_generators"][native.index_of(device)]
        return generator

    return {
        "set_device": set_device,
        "set_per_process_memory_fraction": set_per_process_memory_fraction,
        "get_per_process_memory_fraction": get_per_process_memory_fraction,
        "can_device_access_peer": can_device_access_peer,
        "set_sync_debug_mode": set_sync_debug_mode,
        "get_sync_debug_mode": lambda: kept["sync_debug_mode"],
        "get_default_generator": get_default_generator,
        "is_current_stream_capturing": lambda: False,
    }


def _autocast(pose: Pose) -> Meanings:
    kind = pose.device_type
    dtypes = [
        getattr(torch, name)
        for name in ("float16", "bfloat16")
        if name not in pose.personality.absent_dtypes
    ]

    def set_autocast_dtype(dtype: torch.dtype) -> None:
        torch.set_autocast_dtype(kind, dtype)

    def set_autocast_enabled(enabled: bool) -> None:
        torch.set_autocast_enabled(kind, enabled)

    return {
        "get_amp_supported_dtype": lambda: list(dtypes),
        "get_autocast_dtype": lambda: torch.get_autocast_dtype(kind),
        "set_autocast_dtype": set_autocast_dtype,
        "is_autocast_enabled": lambda: torch.is_autocast_enabled(kind),
        "set_autocast_enabled": set_autocast_enabled,
        "amp_definitely_not_available": lambda: False,
    }


def _private(pose: Pose, native: Any, base: Meanings) -> Meanings:
    """Underscored names that PyTorch and libraries use where an adapter has them."""

    def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
        named = device is not None and not isinstance(device, int)
        if allow_cpu and named and torch.device(device).type == "cpu":
            return -1
        if device is None and not optional:
            raise ValueError("Expected a device with a specified index or an integer, got None")
        return int(native.index_of(device))

    def _get_device(device: Any) -> torch.device:
        return torch.device(pose.device_type, native.index_of(device))

    def _get_generator(device: torch.device) -> torch.Generator:
        generator: torch.Generator = base["default_generators"][native.index_of(device)]
        return generator

    def _lazy_call(callable: Callable[[], Any], **_kwargs: Any) -> None:  # noqa: A002 - torch's
        callable()

    def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
        torch._C._accelerator_setStream(
            torch.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type)
        )

    return {
        "_get_device_index": _get_device_index,
        "_get_device": _get_device,
        "_get_generator": _get_generator,
        "_lazy_call": _lazy_call,
        "_set_stream_by_id": _set_stream_by_id,
        "_is_compiled": lambda: True,
        "_is_internal_in_bad_fork": lambda: False,
        "_sleep": lambda cycles: time.sleep(cycles / _ASSUMED_CLOCK_HZ),
        "_queued_calls": [],
        "_cached_device_count": None,
        "_original_pid": False,
        "_DeviceGuard": base["device"],
    }


def _streams(native: Any, stream_class: type) -> Meanings:
    """Functions that give streams: of the adapter's own class."""

    def own(stream: torch.Stream) -> torch.Stream:
        made: torch.Stream = stream_class(
            stream_id=stream.stream_id,
            device_index=stream.device_index,
            device_type=stream.device_type,
        )
        return made

    def current_stream(device: Any = None) -> torch.Stream:
        return own(torch._C._accelerator_getStream(native.index_of(device)))

    def default_stream(device: Any = None) -> torch.Stream:
        index = native.index_of(device)
        kind = torch._C._accelerator_getStream(index).device_type
        made: torch.Stream = stream_class(stream_id=0, device_index=index, device_type=kind)
        return made

    return {"current_stream": current_stream, "default_stream": default_stream}
