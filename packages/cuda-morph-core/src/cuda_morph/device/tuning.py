"""Settings of NVIDIA's and AMD's libraries: remembered or at their defaults, never in force.

TunableOp is off and stays off; the getters say so with PyTorch's own defaults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_TUNING_DURATION_MS = 30
_MAX_TUNING_ITERATIONS = 100
_CUDNN_BENCHMARK_LIMIT = 10


def c_functions() -> dict[str, Callable[..., Any]]:
    """Returns the setting functions by their names in ``torch._C``."""
    return {**_tunable_getters(), **_tunable_setters(), **_library_settings()}


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
