"""Our own answers for the functions of ``torch.cuda`` that are called often or need a policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuda_morph.device.protocol import DeviceArgument, DeviceRuntime
    from cuda_morph.records import Backend
    from cuda_morph.views import ViewPolicy

Answer = Callable[..., Any]


def answers(runtime: DeviceRuntime, policy: ViewPolicy, backend: Backend) -> dict[str, Answer]:
    """Returns answers by the name of the function of ``torch.cuda`` that they stand for."""
    return {
        **_device_answers(runtime, policy),
        **_memory_answers(runtime),
        **_policy_answers(runtime, backend),
        **_private_answers(runtime),
    }


def _device_answers(runtime: DeviceRuntime, policy: ViewPolicy) -> dict[str, Answer]:
    def set_device(device: DeviceArgument) -> None:
        if isinstance(device, int) and device < 0:
            return
        runtime.set_device(runtime.index_of(device))

    def set_stream(stream: Any) -> None:
        if stream is not None:
            runtime.set_stream(stream)

    return {
        "is_available": policy.is_available,
        "device_count": runtime.device_count,
        "current_device": runtime.current_device,
        "set_device": set_device,
        "synchronize": runtime.synchronize,
        "current_stream": runtime.current_stream,
        "default_stream": runtime.default_stream,
        "set_stream": set_stream,
    }


def _memory_answers(runtime: DeviceRuntime) -> dict[str, Answer]:
    def device_memory_used(device: DeviceArgument) -> int:
        free, total = runtime.memory_info(device)
        return total - free

    figure = runtime.memory_reader
    reserved, peak_reserved = figure("reserved", "current"), figure("reserved", "peak")
    return {
        "memory_allocated": figure("allocated", "current"),
        "max_memory_allocated": figure("allocated", "peak"),
        "memory_reserved": reserved,
        "memory_cached": reserved,
        "max_memory_reserved": peak_reserved,
        "max_memory_cached": peak_reserved,
        "reset_peak_memory_stats": runtime.reset_peak_memory,
        "reset_max_memory_allocated": runtime.reset_peak_memory,
        "reset_max_memory_cached": runtime.reset_peak_memory,
        "mem_get_info": runtime.memory_info,
        "empty_cache": runtime.empty_cache,
        "device_memory_used": device_memory_used,
    }


def _policy_answers(runtime: DeviceRuntime, backend: Backend) -> dict[str, Answer]:
    def is_bf16_supported(including_emulation: bool) -> bool:
        del including_emulation
        return runtime.supports_bf16()

    def get_device_capability(device: DeviceArgument) -> tuple[int, int]:
        properties = runtime.properties(runtime.index_of(device))
        return properties.major, properties.minor

    def list_gpu_processes(device: DeviceArgument) -> str:
        tool = backend.smi or "the vendor's own tool"
        return f"GPU:{runtime.index_of(device)}\nprocesses are listed by {tool}"

    return {
        "is_bf16_supported": is_bf16_supported,
        "is_tf32_supported": lambda: False,
        "get_device_capability": get_device_capability,
        "get_gencode_flags": lambda: "",
        "list_gpu_processes": list_gpu_processes,
        "nccl.is_available": lambda _tensors: False,
        "nccl.version": lambda: (0, 0, 0),
    }


def _private_answers(runtime: DeviceRuntime) -> dict[str, Answer]:
    """Answers for the underscored functions that torch.cuda's own code calls."""

    def get_device_index(device: DeviceArgument, optional: bool, allow_cpu: bool) -> int:
        return device_index(runtime, device, optional, allow_cpu)

    return {
        "_exchange_device": runtime.exchange_device,
        "_maybe_exchange_device": runtime.exchange_device,
        "_is_compiled": lambda: True,
        "_lazy_init": lambda: None,
        "_utils._get_device_index": get_device_index,
    }


def device_index(
    runtime: DeviceRuntime, device: DeviceArgument, optional: bool, allow_cpu: bool
) -> int:
    """Returns the ordinal that a CUDA call means by `device`.

    Args:
        runtime: The active device runtime.
        device: ``None``, an int, a string or a ``torch.device``.
        optional: Whether a missing index means the current device.
        allow_cpu: Whether a CPU device is accepted, as -1.

    Raises:
        ValueError: `device` is of another type, or has no index where one is needed.
    """
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    if device is not None:
        import torch

        parsed = torch.device(device)
        if parsed.type == "cpu" and allow_cpu and runtime.device_type != "cpu":
            return -1
        if parsed.type not in ("cuda", runtime.device_type):
            raise ValueError(f"Expected a cuda device, but got: {device}")
        if parsed.index is not None:
            return int(parsed.index)
    if optional:
        return runtime.current_device()
    if runtime.device_type == "cpu" and device is not None:
        return 0
    raise ValueError(
        f"Expected a torch.device with a specified index or an integer, but got:{device}"
    )
