"""Calls for the rows about memory."""

from __future__ import annotations

import torch
from world import raises

cuda = torch.cuda
BYTES = 64 << 20


def block():
    return torch.ones(BYTES // 4, device="cuda")


def memory_allocated(world):
    before = cuda.memory_allocated()
    held = block()
    grown = cuda.memory_allocated(0) - before
    # The cpu backend reports the whole process, which may grow or shrink by other things.
    assert grown == BYTES if world.backend == "sim" else grown > BYTES // 2
    del held
    assert cuda.memory_allocated("cuda") - before < BYTES // 2


def max_memory_allocated(world):
    cuda.reset_peak_memory_stats()
    before = cuda.max_memory_allocated()
    held = block()
    del held
    assert cuda.max_memory_allocated() >= before + BYTES // 2


def memory_reserved(world):
    held = block()
    assert cuda.memory_reserved() >= held.nbytes


def max_memory_reserved(world):
    held = block()
    assert cuda.max_memory_reserved() >= held.nbytes
    assert cuda.max_memory_reserved() >= cuda.memory_reserved() // 2


def memory_cached(world):
    held = block()
    assert cuda.memory_cached() >= held.nbytes
    assert cuda.max_memory_cached() >= held.nbytes


def reset_peak_memory_stats(world):
    held = block()
    del held
    cuda.empty_cache()
    high = cuda.max_memory_allocated()
    assert cuda.reset_peak_memory_stats() is None
    assert cuda.max_memory_allocated() < high


def reset_max(world):
    for reset in (cuda.reset_max_memory_allocated, cuda.reset_max_memory_cached):
        held = block()
        del held
        cuda.empty_cache()
        high = cuda.max_memory_allocated()
        reset()
        assert cuda.max_memory_allocated() < high


def reset_accumulated(world):
    held = block()
    assert cuda.reset_accumulated_memory_stats() is None
    if world.backend == "sim":
        assert cuda.memory_stats()["allocated_bytes.all.allocated"] == 0
        assert cuda.memory_allocated() >= held.nbytes


def mem_get_info(world):
    cuda.empty_cache()
    free, total = cuda.mem_get_info()
    assert 0 < free <= total
    if world.backend == "sim":
        held = block()
        assert cuda.mem_get_info("cuda:0")[0] <= free - held.nbytes // 2
        assert cuda.mem_get_info(0)[1] == total


def device_memory_used(world):
    free, total = cuda.mem_get_info()
    assert abs(cuda.device_memory_used() - (total - free)) < total // 4


def empty_cache(world):
    held = block()
    del held
    assert cuda.empty_cache() is None
    assert cuda.memory_reserved() >= cuda.memory_allocated() * (world.backend == "sim")


def memory_stats(world):
    stats = cuda.memory_stats()
    held = block()
    after = cuda.memory_stats(0)
    key = "allocated_bytes.all.current"
    assert after[key] > stats[key]
    assert after["allocated_bytes.all.peak"] >= held.nbytes
    for name in ("num_ooms", "num_alloc_retries", "reserved_bytes.all.current"):
        assert after[name] >= 0


def memory_stats_nested(world):
    nested = cuda.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"]["current"] >= 0


def memory_summary(world):
    assert "Allocated memory" in cuda.memory_summary()
    assert "Allocated memory" in cuda.memory_summary(0, abbreviated=True)


def host_memory_stats(world):
    stats = cuda.host_memory_stats()
    assert stats["allocated_bytes.current"] == stats["num_host_alloc"] == 0
    assert stats["host_alloc_time.total"] == 0


def host_memory_stats_nested(world):
    assert cuda.host_memory_stats_as_nested_dict()["active_bytes"]["peak"] == 0


def reset_host(world):
    assert cuda.reset_accumulated_host_memory_stats() is None
    assert cuda.reset_peak_host_memory_stats() is None


def get_allocator_backend(world):
    assert cuda.get_allocator_backend() == "native"


def get_fraction(world):
    assert cuda.get_per_process_memory_fraction() == 1.0


def ipc_collect(world):
    assert cuda.ipc_collect() is None


def out_of_memory(world):
    assert issubclass(cuda.OutOfMemoryError, RuntimeError)
    assert cuda.OutOfMemoryError is torch.OutOfMemoryError
    if world.backend == "sim":
        message = raises(
            cuda.OutOfMemoryError, torch.empty, 1 << 40, dtype=torch.uint8, device="cuda"
        )
        assert "memory" in message


CALLS = {
    "torch.cuda.memory_allocated": memory_allocated,
    "torch.cuda.max_memory_allocated": max_memory_allocated,
    "torch.cuda.memory_reserved": memory_reserved,
    "torch.cuda.max_memory_reserved": max_memory_reserved,
    "torch.cuda.memory_cached": memory_cached,
    "torch.cuda.max_memory_cached": memory_cached,
    "torch.cuda.reset_peak_memory_stats": reset_peak_memory_stats,
    "torch.cuda.reset_max_memory_allocated": reset_max,
    "torch.cuda.reset_max_memory_cached": reset_max,
    "torch.cuda.reset_accumulated_memory_stats": reset_accumulated,
    "torch.cuda.mem_get_info": mem_get_info,
    "torch.cuda.device_memory_used": device_memory_used,
    "torch.cuda.empty_cache": empty_cache,
    "torch.cuda.memory_stats": memory_stats,
    "torch.cuda.memory_stats_as_nested_dict": memory_stats_nested,
    "torch.cuda.memory_summary": memory_summary,
    "torch.cuda.host_memory_stats": host_memory_stats,
    "torch.cuda.host_memory_stats_as_nested_dict": host_memory_stats_nested,
    "torch.cuda.reset_accumulated_host_memory_stats": reset_host,
    "torch.cuda.reset_peak_host_memory_stats": reset_host,
    "torch.cuda.get_allocator_backend": get_allocator_backend,
    "torch.cuda.get_per_process_memory_fraction": get_fraction,
    "torch.cuda.ipc_collect": ipc_collect,
    "torch.cuda.OutOfMemoryError": out_of_memory,
}
