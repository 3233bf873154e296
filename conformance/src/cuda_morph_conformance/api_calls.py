"""How each name of the API table is called, with all parameters that PyTorch's own function has.

A test compares the keywords with PyTorch's signatures. Settings are set to what they already are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Function = Any
Call = tuple["Callable[[Function], object]", "type | tuple[type, ...]"]
"""Calls the function that it is given; and what that must return."""

NOTHING = type(None)
_NUMBER = (int, float)


def calls() -> Mapping[str, Call]:
    """Returns the call of each function and class that answers, by qualified name without torch."""
    table = {
        **_with_prefix("cuda.", _devices() | _streams() | _memory() | _random() | _library()),
        **_with_prefix("cuda.amp.", _amp()),
        **_with_prefix("cuda.comm.", _comm()),
        **_with_prefix("cuda.nccl.", _nccl()),
        **_with_prefix("cuda.nvtx.", _nvtx()),
        **_with_prefix("cuda.profiler.", _profiler()),
        **_with_prefix("cuda.tunable.", _tunable()),
        **_with_prefix("_C._cuda_", _c_functions() | _c_memory() | _c_settings()),
    }
    for name, aliases in _SAME.items():
        table |= dict.fromkeys(aliases, table[name])
    return table


def _with_prefix(prefix: str, table: dict[str, Call]) -> dict[str, Call]:
    return {prefix + name: call for name, call in table.items()}


def _same(module: str, names: str) -> dict[str, tuple[str, ...]]:
    return {f"cuda.{name}": (f"cuda.{module}.{name}",) for name in names.split()}


_SAME: dict[str, tuple[str, ...]] = {
    **_same(
        "memory",
        "empty_cache get_allocator_backend get_per_process_memory_fraction host_memory_stats "
        "host_memory_stats_as_nested_dict is_initialized list_gpu_processes max_memory_allocated "
        "max_memory_cached max_memory_reserved mem_get_info memory_allocated memory_cached "
        "memory_reserved memory_snapshot memory_stats memory_stats_as_nested_dict memory_summary "
        "reset_accumulated_host_memory_stats reset_accumulated_memory_stats "
        "reset_max_memory_allocated reset_max_memory_cached reset_peak_host_memory_stats "
        "reset_peak_memory_stats set_per_process_memory_fraction caching_allocator_disabled "
        "caching_allocator_enable",
    ),
    **_same(
        "random",
        "current_device device_count get_rng_state get_rng_state_all initial_seed manual_seed "
        "manual_seed_all seed seed_all set_rng_state set_rng_state_all",
    ),
    "cuda.is_initialized": ("cuda.memory.is_initialized", "cuda.random.is_initialized"),
    "cuda.is_current_stream_capturing": ("cuda.graphs.is_current_stream_capturing",),
    "cuda.check_error": ("cuda.profiler.check_error",),
    "cuda.cudart": ("cuda.profiler.cudart",),
    "cuda.amp.autocast": ("cuda.amp.autocast_mode.autocast",),
    "cuda.amp.custom_fwd": ("cuda.amp.autocast_mode.custom_fwd",),
    "cuda.amp.custom_bwd": ("cuda.amp.autocast_mode.custom_bwd",),
    "cuda.amp.GradScaler": ("cuda.amp.grad_scaler.GradScaler",),
    "cuda.amp.amp_definitely_not_available": ("cuda.amp.common.amp_definitely_not_available",),
}
"""One function under several names."""


def _devices() -> dict[str, Call]:
    import torch

    cuda = torch.cuda
    return {
        "can_device_access_peer": (lambda f: f(device=0, peer_device=0), bool),
        "check_error": (lambda f: f(res=0), NOTHING),
        "current_device": (lambda f: f(), int),
        "device": (lambda f: _entered(f(device=0)), object),
        "device_count": (lambda f: f(), int),
        "device_of": (lambda f: _entered(f(obj=_ones())), object),
        "get_arch_list": (lambda f: f(), list),
        "get_device_capability": (lambda f: f(device=0), tuple),
        "get_device_name": (lambda f: f(device=0), str),
        "get_device_properties": (lambda f: f(device=0), object),
        "get_gencode_flags": (lambda f: f(), str),
        "get_sync_debug_mode": (lambda f: f(), int),
        "init": (lambda f: f(), NOTHING),
        "ipc_collect": (lambda f: f(), NOTHING),
        "is_available": (lambda f: f(), bool),
        "is_bf16_supported": (lambda f: f(including_emulation=True), bool),
        "is_initialized": (lambda f: f(), bool),
        "is_tf32_supported": (lambda f: f(), bool),
        "set_device": (lambda f: f(device=cuda.current_device()), NOTHING),
        "set_sync_debug_mode": (lambda f: f(debug_mode=0), NOTHING),
        "synchronize": (lambda f: f(device=0), NOTHING),
    }


def _streams() -> dict[str, Call]:
    import torch

    current = torch.cuda.current_stream
    return {
        "current_stream": (lambda f: f(device=0), torch.Stream),
        "default_stream": (lambda f: f(device=0), torch.Stream),
        "is_current_stream_capturing": (lambda f: f(), bool),
        "set_stream": (lambda f: f(stream=current()), NOTHING),
        "stream": (lambda f: _entered(f(stream=current())), object),
        "StreamContext": (lambda f: _entered(f(stream=current())), object),
    }


def _memory() -> dict[str, Call]:
    on_device: dict[str, type] = {
        "device_memory_used": int,
        "get_per_process_memory_fraction": float,
        "list_gpu_processes": str,
        "max_memory_allocated": int,
        "max_memory_cached": int,
        "max_memory_reserved": int,
        "mem_get_info": tuple,
        "memory_allocated": int,
        "memory_cached": int,
        "memory_reserved": int,
        "memory_stats": dict,
        "memory_stats_as_nested_dict": dict,
        "reset_accumulated_memory_stats": NOTHING,
        "reset_max_memory_allocated": NOTHING,
        "reset_max_memory_cached": NOTHING,
        "reset_peak_memory_stats": NOTHING,
    }
    plain: dict[str, type] = {
        "empty_cache": NOTHING,
        "get_allocator_backend": str,
        "host_memory_stats": dict,
        "host_memory_stats_as_nested_dict": dict,
        "reset_accumulated_host_memory_stats": NOTHING,
        "reset_peak_host_memory_stats": NOTHING,
    }
    return {
        **{name: (lambda f: f(device=0), kind) for name, kind in on_device.items()},
        **{name: (lambda f: f(), kind) for name, kind in plain.items()},
        "caching_allocator_disabled": (lambda f: _entered(f()), object),
        "caching_allocator_enable": (lambda f: f(value=True), NOTHING),
        "memory_snapshot": (lambda f: f(mempool_id=None, include_traces=True), list),
        "memory_summary": (lambda f: f(device=0, abbreviated=True), str),
        "set_per_process_memory_fraction": (lambda f: f(fraction=1.0, device=0), NOTHING),
    }


def _random() -> dict[str, Call]:
    import torch

    cuda = torch.cuda
    return {
        "get_rng_state": (lambda f: f(device=0), torch.Tensor),
        "get_rng_state_all": (lambda f: f(), list),
        "initial_seed": (lambda f: f(), int),
        "manual_seed": (lambda f: f(seed=1), NOTHING),
        "manual_seed_all": (lambda f: f(seed=1), NOTHING),
        "seed": (lambda f: f(), NOTHING),
        "seed_all": (lambda f: f(), NOTHING),
        "set_rng_state": (lambda f: f(new_state=cuda.get_rng_state(), device=0), NOTHING),
        "set_rng_state_all": (lambda f: f(new_states=cuda.get_rng_state_all()), NOTHING),
    }


def _library() -> dict[str, Call]:
    return {
        "cudart": (lambda f: f(), object),
        "CudaError": (lambda f: f(code=2), RuntimeError),
    }


def _amp() -> dict[str, Call]:
    import torch

    scaler = {
        "init_scale": 4.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 7,
        "enabled": True,
    }
    return {
        "amp_definitely_not_available": (lambda f: f(), bool),
        "autocast": (
            lambda f: _entered(f(enabled=True, dtype=torch.bfloat16, cache_enabled=True)),
            object,
        ),
        "custom_bwd": (lambda f: f(bwd=_identity), object),
        "custom_fwd": (lambda f: f(fwd=_identity, cast_inputs=torch.float16), object),
        "GradScaler": (lambda f: f(**scaler), object),
    }


def _comm() -> dict[str, Call]:
    import torch

    two = {"destination": 0}
    return {
        "broadcast": (lambda f: f(tensor=_ones(), devices=[0], out=None), (list, tuple)),
        "broadcast_coalesced": (
            lambda f: f(tensors=[_ones()], devices=[0], buffer_size=1024),
            (list, tuple),
        ),
        "gather": (lambda f: f(tensors=[_ones()], dim=0, out=None, **two), torch.Tensor),
        "reduce_add": (lambda f: f(inputs=[_ones()], **two), torch.Tensor),
        "reduce_add_coalesced": (
            lambda f: f(inputs=[[_ones()]], buffer_size=1024, **two),
            (list, tuple),
        ),
        "scatter": (
            lambda f: f(
                tensor=_ones(), devices=[0], chunk_sizes=None, dim=0, streams=None, out=None
            ),
            tuple,
        ),
    }


def _nccl() -> dict[str, Call]:
    return {
        "is_available": (lambda f: f(tensors=[_ones()]), bool),
        "version": (lambda f: f(), tuple),
    }


def _nvtx() -> dict[str, Call]:
    import torch

    nvtx = torch.cuda.nvtx
    return {
        "mark": (lambda f: f(msg="here"), NOTHING),
        "range": (lambda f: _entered(f("step {}", 1)), object),
        "range_end": (lambda f: f(range_id=nvtx.range_start("a")), NOTHING),
        "range_pop": (lambda f: (nvtx.range_push("a"), f())[1], int),
        "range_push": (lambda f: (f(msg="a"), nvtx.range_pop())[0], int),
        "range_start": (lambda f: nvtx.range_end(f(msg="a")), NOTHING),
    }


def _profiler() -> dict[str, Call]:
    return {
        "profile": (lambda f: _entered(f()), object),
        "start": (lambda f: f(), NOTHING),
        "stop": (lambda f: f(), NOTHING),
    }


def _tunable() -> dict[str, Call]:
    tolerances = {"enable": False, "atol": 1e-5, "rtol": 1e-5}
    return {
        "enable": (lambda f: f(val=False), NOTHING),
        "get_filename": (lambda f: f(), str),
        "get_max_tuning_duration": (lambda f: f(), int),
        "get_max_tuning_iterations": (lambda f: f(), int),
        "get_results": (lambda f: f(), tuple),
        "get_rotating_buffer_size": (lambda f: f(), int),
        "get_validators": (lambda f: f(), tuple),
        "is_enabled": (lambda f: f(), bool),
        "read_file": (lambda f: f(filename="absent.csv"), bool),
        "record_untuned_enable": (lambda f: f(val=False), NOTHING),
        "record_untuned_is_enabled": (lambda f: f(), bool),
        "set_filename": (lambda f: f(filename="absent.csv", insert_device_ordinal=False), NOTHING),
        "set_max_tuning_duration": (lambda f: f(duration=30), NOTHING),
        "set_max_tuning_iterations": (lambda f: f(iterations=100), NOTHING),
        "set_numerical_check_tolerances": (lambda f: f(**tolerances), NOTHING),
        "set_rotating_buffer_size": (lambda f: f(buffer_size=0), NOTHING),
        "tuning_enable": (lambda f: f(val=False), NOTHING),
        "tuning_is_enabled": (lambda f: f(), bool),
    }


def _c_functions() -> dict[str, Call]:
    import torch

    def current() -> tuple[int, ...]:
        stream = torch.cuda.current_stream()
        return (stream.stream_id, stream.device_index, stream.device_type)

    return {
        "canDeviceAccessPeer": (lambda f: f(0, 0), bool),
        "exchangeDevice": (lambda f: f(torch.cuda.current_device()), int),
        "getArchFlags": (lambda f: f(), (str, NOTHING)),
        "getCompiledVersion": (lambda f: f(), int),
        "getCurrentRawStream": (lambda f: f(0), int),
        "getCurrentStream": (lambda f: f(0), tuple),
        "getDefaultStream": (lambda f: f(0), tuple),
        "getDevice": (lambda f: f(), int),
        "getDeviceCount": (lambda f: f(), int),
        "hasPrimaryContext": (lambda f: f(0), bool),
        "init": (lambda f: f(), NOTHING),
        "ipc_collect": (lambda f: f(), NOTHING),
        "isCurrentStreamCapturing": (lambda f: f(), bool),
        "isInBadFork": (lambda f: f(), bool),
        "maybeExchangeDevice": (lambda f: f(-1), int),
        "setDevice": (lambda f: f(torch.cuda.current_device()), NOTHING),
        "setStream": (lambda f: f(*current()), NOTHING),
        "sleep": (lambda f: f(1000), NOTHING),
        "synchronize": (lambda f: f(), NOTHING),
    }


def _c_memory() -> dict[str, Call]:
    return {
        "allocationTraceback": (lambda f: f(0), object),
        "cudaCachingAllocator_enable": (lambda f: f(True), NOTHING),
        "cudaCachingAllocator_is_enabled": (lambda f: f(), bool),
        "emptyCache": (lambda f: f(), NOTHING),
        "getAllocatorBackend": (lambda f: f(), str),
        "getMemoryFraction": (lambda f: f(0), _NUMBER),
        "getMemoryMetadata": (lambda f: f(), str),
        "hostMemoryStats": (lambda f: f(), dict),
        "isHistoryEnabled": (lambda f: f(), bool),
        "memorySnapshot": (lambda f: f(None), dict),
        "memoryStats": (lambda f: f(0), dict),
        "record_memory_history": (lambda f: f(None), NOTHING),
        "record_memory_history_legacy": (lambda f: f(False, False, 1, False, False), NOTHING),
        "resetAccumulatedHostMemoryStats": (lambda f: f(), NOTHING),
        "resetAccumulatedMemoryStats": (lambda f: f(0), NOTHING),
        "resetPeakHostMemoryStats": (lambda f: f(), NOTHING),
        "resetPeakMemoryStats": (lambda f: f(0), NOTHING),
        "setMemoryFraction": (lambda f: f(1.0, 0), NOTHING),
        "setMemoryMetadata": (lambda f: f(""), NOTHING),
    }


def _c_settings() -> dict[str, Call]:
    return {
        "clearCublasWorkspaces": (lambda f: f(), NOTHING),
        "get_conv_benchmark_empty_cache": (lambda f: f(), bool),
        "get_cudnn_benchmark_limit": (lambda f: f(), int),
        "get_sync_debug_mode": (lambda f: f(), int),
        "getCublasLtWorkspaceSize": (lambda f: f(), int),
        "getCublasWorkspaceSize": (lambda f: f(), int),
        "record_untuned_enable": (lambda f: f(False), NOTHING),
        "record_untuned_is_enabled": (lambda f: f(), bool),
        "resetCublasLtWorkspaceSize": (lambda f: f(), NOTHING),
        "resetCublasWorkspaceSize": (lambda f: f(), NOTHING),
        "set_cudnn_benchmark_limit": (lambda f: f(10), NOTHING),
        "set_sync_debug_mode": (lambda f: f(0), NOTHING),
        "setCublasLtWorkspaceSize": (lambda f: f(0), NOTHING),
        "setCublasWorkspaceSize": (lambda f: f(0), NOTHING),
        "tunableop_enable": (lambda f: f(False), NOTHING),
        "tunableop_get_filename": (lambda f: f(), str),
        "tunableop_get_max_tuning_duration": (lambda f: f(), int),
        "tunableop_get_max_tuning_iterations": (lambda f: f(), int),
        "tunableop_get_results": (lambda f: f(), tuple),
        "tunableop_get_rotating_buffer_size": (lambda f: f(), int),
        "tunableop_get_rotation_buffer_size": (lambda f: f(), int),
        "tunableop_get_validators": (lambda f: f(), tuple),
        "tunableop_is_enabled": (lambda f: f(), bool),
        "tunableop_read_file": (lambda f: f("absent.csv"), bool),
        "tunableop_set_filename": (lambda f: f("absent.csv", False), NOTHING),
        "tunableop_set_max_tuning_duration": (lambda f: f(30), NOTHING),
        "tunableop_set_max_tuning_iterations": (lambda f: f(100), NOTHING),
        "tunableop_set_numerical_check_tolerances": (lambda f: f(False, 1e-5, 1e-5), NOTHING),
        "tunableop_set_rotating_buffer_size": (lambda f: f(0), NOTHING),
        "tunableop_tuning_enable": (lambda f: f(False), NOTHING),
        "tunableop_tuning_is_enabled": (lambda f: f(), bool),
    }


def _ones() -> Any:
    import torch

    return torch.ones(2, device="cuda")


def _entered(context: Any) -> object:
    with context:
        return context


def _identity(*arguments: object) -> object:
    return arguments
