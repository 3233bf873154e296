"""Functions of ``torch._C`` that are accepted or answered at their defaults, and change nothing.

Settings of NVIDIA's and AMD's libraries are remembered and never in force: TunableOp is off and
stays off; the getters say so with PyTorch's own defaults. The allocator's history and snapshot are
valid and empty, since the accelerator keeps none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.device.protocol import DeviceRuntime

_MAX_TUNING_DURATION_MS = 30
_MAX_TUNING_ITERATIONS = 100
_CUDNN_BENCHMARK_LIMIT = 10
_HOST_KINDS = ("allocations", "allocated_bytes", "active_requests", "active_bytes")
_MOMENTS = ("current", "peak", "allocated", "freed")
_TIMES = ("host_alloc_time", "host_free_time")
_TIME_MOMENTS = ("total", "max", "min", "count", "avg")


def c_functions(runtime: DeviceRuntime) -> dict[str, Callable[..., Any]]:
    """Returns the functions by their names in ``torch._C``.

    Args:
        runtime: Says how many devices the memory traces are for.
    """
    return {
        **_tunable_getters(),
        **_tunable_setters(),
        **_library_settings(),
        **_memory_history(runtime),
    }


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    """Accepts a setting that nothing reads."""


def _no(*_args: Any, **_kwargs: Any) -> bool:
    return False


def _tunable_getters() -> dict[str, Callable[..., Any]]:
    return {
        "_cuda_tunableop_is_enabled": _no,
        "_cuda_tunableop_tuning_is_enabled": _no,
        "_cuda_record_untuned_is_enabled": _no,
        "_cuda_tunableop_get_filename": lambda: "",
        "_cuda_tunableop_get_max_tuning_duration": lambda: _MAX_TUNING_DURATION_MS,
        "_cuda_tunableop_get_max_tuning_iterations": lambda: _MAX_TUNING_ITERATIONS,
        "_cuda_tunableop_get_results": lambda: (),
        "_cuda_tunableop_get_validators": lambda: (),
        "_cuda_tunableop_get_rotating_buffer_size": lambda: 0,
        "_cuda_tunableop_get_rotation_buffer_size": lambda: 0,
    }


def _tunable_setters() -> dict[str, Callable[..., Any]]:
    return {
        "_cuda_tunableop_enable": _nothing,
        "_cuda_tunableop_tuning_enable": _nothing,
        "_cuda_record_untuned_enable": _nothing,
        "_cuda_tunableop_set_filename": _nothing,
        "_cuda_tunableop_set_max_tuning_duration": _nothing,
        "_cuda_tunableop_set_max_tuning_iterations": _nothing,
        "_cuda_tunableop_set_numerical_check_tolerances": _nothing,
        "_cuda_tunableop_set_rotating_buffer_size": _nothing,
        "_cuda_tunableop_read_file": _no,
    }


def _library_settings() -> dict[str, Callable[..., Any]]:
    sizes = {"cublas": 0, "cublaslt": 0}
    limit = {"cudnn": _CUDNN_BENCHMARK_LIMIT}

    def setter(name: str) -> Callable[[int], None]:
        def remember(value: int) -> None:
            (limit if name in limit else sizes)[name] = value

        return remember

    return {
        "_cuda_getCublasWorkspaceSize": lambda: sizes["cublas"],
        "_cuda_setCublasWorkspaceSize": setter("cublas"),
        "_cuda_resetCublasWorkspaceSize": lambda: sizes.update(cublas=0),
        "_cuda_getCublasLtWorkspaceSize": lambda: sizes["cublaslt"],
        "_cuda_setCublasLtWorkspaceSize": setter("cublaslt"),
        "_cuda_resetCublasLtWorkspaceSize": lambda: sizes.update(cublaslt=0),
        "_cuda_get_cudnn_benchmark_limit": lambda: limit["cudnn"],
        "_cuda_set_cudnn_benchmark_limit": setter("cudnn"),
        "_cuda_get_conv_benchmark_empty_cache": _no,
    }


def _memory_history(runtime: DeviceRuntime) -> dict[str, Callable[..., Any]]:
    """Programs turn the history on, train, and dump a pickle for PyTorch's memory viewer.

    They run; the viewer opens the file and shows no blocks; the stub's notice says why.
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
