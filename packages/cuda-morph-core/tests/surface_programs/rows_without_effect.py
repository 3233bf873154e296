"""Arguments for the rows that are stubs or refused; what must happen is the same for all."""

from __future__ import annotations

import torch

C, cuda = torch._C, torch.cuda


def disabled():
    with cuda.caching_allocator_disabled():
        pass


def profiled():
    with cuda.profiler.profile():
        pass


def debug_mode():
    cuda.set_sync_debug_mode("warn")
    assert cuda.get_sync_debug_mode() == 1
    cuda.set_sync_debug_mode(0)


def fraction():
    cuda.set_per_process_memory_fraction(0.5, 0)
    assert cuda.get_per_process_memory_fraction(0) == 0.5
    cuda.set_per_process_memory_fraction(1.0, 0)


def snapshot():
    assert cuda.memory_snapshot() == []
    assert cuda.memory._snapshot()["segments"] == []


def benchmark_limit():
    C._cuda_set_cudnn_benchmark_limit(3)
    assert C._cuda_get_cudnn_benchmark_limit() == 3


TUNABLE = {
    "enable": (True,),
    "tuning_enable": (True,),
    "set_filename": ("x.csv", False),
    "set_max_tuning_duration": (5,),
    "set_max_tuning_iterations": (5,),
    "set_numerical_check_tolerances": (True, 1e-5, 1e-5),
    "set_rotating_buffer_size": (5,),
    "read_file": ("x.csv",),
}
STUBS = {
    "torch.cuda.caching_allocator_enable": lambda: cuda.caching_allocator_enable(False),
    "torch.cuda.caching_allocator_disabled": disabled,
    "torch.cuda.memory_snapshot": snapshot,
    "torch.cuda.set_per_process_memory_fraction": fraction,
    "torch.cuda.set_sync_debug_mode": debug_mode,
    "torch.cuda.get_sync_debug_mode": debug_mode,
    "torch.cuda.profiler.start": cuda.profiler.start,
    "torch.cuda.profiler.stop": cuda.profiler.stop,
    "torch.cuda.profiler.profile": profiled,
    "torch.cuda.tunable.record_untuned_enable": lambda: cuda.tunable.record_untuned_enable(True),
    "torch._C._cuda_record_untuned_enable": lambda: C._cuda_record_untuned_enable(True),
    "torch._C._cuda_cudaCachingAllocator_enable": (
        lambda: C._cuda_cudaCachingAllocator_enable(False)
    ),
    "torch._C._cuda_memorySnapshot": lambda: C._cuda_memorySnapshot(None),
    "torch._C._cuda_record_memory_history": lambda: cuda.memory._record_memory_history("all"),
    "torch._C._cuda_record_memory_history_legacy": (
        lambda: cuda.memory._record_memory_history(enabled=True)
    ),
    "torch._C._cuda_set_cudnn_benchmark_limit": benchmark_limit,
    "torch._C._cuda_set_sync_debug_mode": lambda: C._cuda_set_sync_debug_mode(0),
    "torch._C._cuda_setCublasWorkspaceSize": lambda: C._cuda_setCublasWorkspaceSize(0),
    "torch._C._cuda_setCublasLtWorkspaceSize": lambda: C._cuda_setCublasLtWorkspaceSize(0),
    "torch._C._cuda_setMemoryFraction": lambda: C._cuda_setMemoryFraction(1.0, 0),
    **{
        f"torch.cuda.tunable.{name}": lambda name=name, args=args: getattr(cuda.tunable, name)(
            *args
        )
        for name, args in TUNABLE.items()
    },
    **{
        f"torch._C._cuda_tunableop_{name}": lambda name=name, args=args: getattr(
            C, f"_cuda_tunableop_{name}"
        )(*args)
        for name, args in TUNABLE.items()
    },
}


def captured():
    with cuda.graph(cuda.CUDAGraph()):
        pass


def pooled():
    with cuda.use_mem_pool(None):
        pass


CAPTURES = {"torch.cuda.graph": captured, "torch.cuda.use_mem_pool": pooled}
"""Refused names that are used in a ``with`` statement."""
