"""The functions of ``torch._C`` that a CUDA build has and ``torch.cuda`` calls.

PyTorch's own Python code of ``torch.cuda`` stays in charge; only what it finds below is ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cuda_morph.device import inert

if TYPE_CHECKING:
    from cuda_morph.device.protocol import DeviceRuntime
    from cuda_morph.device.treatments import Notices

Functions = dict[str, Callable[..., Any]]

_ASSUMED_CLOCK_HZ = 1.0e9
"""Cycles per second by which ``torch.cuda._sleep`` is turned into time."""


def c_functions(runtime: DeviceRuntime) -> Functions:
    """Returns the implemented ``torch._C`` functions by name, answered by `runtime`."""
    return {
        **_device_functions(runtime),
        **_stream_functions(runtime),
        **_memory_functions(runtime),
        **_setting_functions(),
        **inert.c_functions(runtime),
    }


def _device_functions(runtime: DeviceRuntime) -> Functions:
    def sleep(cycles: int) -> None:
        time.sleep(cycles / _ASSUMED_CLOCK_HZ)

    # Dynamo refuses one function under two names, and torch.cuda already has the plain ones.
    return {
        "_cuda_init": lambda: None,
        "_cuda_getDeviceCount": lambda: runtime.device_count(),  # noqa: PLW0108
        "_cuda_getDevice": lambda: runtime.current_device(),  # noqa: PLW0108
        "_cuda_setDevice": runtime.set_device,
        "_cuda_exchangeDevice": runtime.exchange_device,
        "_cuda_maybeExchangeDevice": runtime.exchange_device,
        "_cuda_synchronize": lambda: runtime.synchronize(),  # noqa: PLW0108
        "_cuda_isInBadFork": lambda: False,
        "_cuda_hasPrimaryContext": lambda _index: True,
        "_cuda_canDeviceAccessPeer": lambda _a, _b: True,
        "_cuda_getArchFlags": lambda: None,
        "_cuda_getCompiledVersion": lambda: 0,
        "_cuda_sleep": sleep,
        "_cuda_ipc_collect": lambda: None,
    }


def _stream_functions(runtime: DeviceRuntime) -> Functions:
    def describe(stream: Any) -> tuple[int, int, int]:
        return (stream.stream_id, stream.device_index, stream.device_type)

    def set_stream(stream_id: int, device_index: int, device_type: int) -> None:
        runtime.set_stream(
            runtime.stream_class(
                stream_id=stream_id, device_index=device_index, device_type=device_type
            )
        )

    return {
        "_cuda_getCurrentStream": lambda index: describe(runtime.current_stream(index)),
        "_cuda_getDefaultStream": lambda index: describe(runtime.default_stream(index)),
        "_cuda_getCurrentRawStream": lambda index: runtime.current_stream(index).stream_id,
        "_cuda_setStream": set_stream,
        "_cuda_isCurrentStreamCapturing": lambda: False,
    }


def _memory_functions(runtime: DeviceRuntime) -> Functions:
    fractions: dict[int, float] = {}

    def memory_stats(index: int) -> dict[str, Any]:
        from cuda_morph.device.memory_keys import nested

        return nested(runtime.memory_stats(index))

    def set_fraction(fraction: float, index: int) -> None:
        fractions[index] = fraction

    return {
        "_cuda_memoryStats": memory_stats,
        "_cuda_resetPeakMemoryStats": runtime.reset_peak_memory,
        "_cuda_resetAccumulatedMemoryStats": runtime.reset_accumulated_memory,
        "_cuda_emptyCache": lambda *_pool: runtime.empty_cache(),
        "_cuda_setMemoryFraction": set_fraction,
        "_cuda_getMemoryFraction": lambda index: fractions.get(index, 1.0),
        "_cuda_resetPeakHostMemoryStats": lambda: None,
        "_cuda_resetAccumulatedHostMemoryStats": lambda: None,
        "_cuda_getAllocatorBackend": lambda: "native",
        "_cuda_cudaCachingAllocator_enable": lambda _value: None,
        "_cuda_cudaCachingAllocator_is_enabled": lambda: True,
        "_cuda_clearCublasWorkspaces": lambda: None,
    }


def _setting_functions() -> Functions:
    settings = {"sync_debug_mode": 0}

    def set_sync_debug_mode(mode: int) -> None:
        settings["sync_debug_mode"] = mode

    return {
        "_cuda_get_sync_debug_mode": lambda: settings["sync_debug_mode"],
        "_cuda_set_sync_debug_mode": set_sync_debug_mode,
    }


def cudart(runtime: DeviceRuntime, notices: Notices, refuse: Callable[[str], Any]) -> Any:
    """Returns a stand-in for the CUDA runtime module.

    Args:
        runtime: Answers the memory figures.
        notices: Where the calls without effect speak up.
        refuse: Returns a refusal for the function of that name.
    """
    return _Cudart(runtime, notices, refuse)


class _Cudart:
    """The functions of ``torch.cuda.cudart()``; those that need a CUDA driver are refused."""

    class cudaError(int):  # noqa: N801 - the name CUDA gives it
        """Result codes; only success is ever returned."""

        success = 0

    def __init__(
        self, runtime: DeviceRuntime, notices: Notices, refuse: Callable[[str], Any]
    ) -> None:
        self._runtime = runtime
        self._notices = notices
        self.cudaStreamCreate = refuse("torch.cuda.cudart().cudaStreamCreate")
        self.cudaStreamDestroy = refuse("torch.cuda.cudart().cudaStreamDestroy")

    def cudaMemGetInfo(self, index: int) -> tuple[int, int]:  # noqa: N802
        """Returns free and total bytes of a device."""
        return self._runtime.memory_info(index)

    def cudaGetErrorString(self, code: int) -> str:  # noqa: N802
        """Returns a text for a result code."""
        return "no error" if int(code) == 0 else f"unknown CUDA error {int(code)}"

    def cudaProfilerStart(self) -> int:  # noqa: N802
        """Accepted, with a notice: no profiler of another vendor listens to it."""
        self._notices.give(
            "torch.cuda.profiler", "No profiler is told; use torch.profiler for a trace."
        )
        return 0

    cudaProfilerStop = cudaProfilerStart  # noqa: N815

    def cudaHostRegister(self, *_range: int) -> int:  # noqa: N802
        """Accepted: host memory needs no registration here."""
        return 0

    cudaHostUnregister = cudaHostRegister  # noqa: N815
