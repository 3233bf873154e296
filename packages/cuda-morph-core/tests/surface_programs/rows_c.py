"""Calls for the rows of ``torch._C``: what PyTorch's own code gets from below."""

from __future__ import annotations

import torch

C = torch._C


def same_as(call, expected):
    def check(world):
        assert call() == expected(world) if callable(expected) else call() == expected

    return check


def exchange(world):
    for function in (C._cuda_exchangeDevice, C._cuda_maybeExchangeDevice):
        assert function(world.devices - 1) == 0
        assert function(0) == world.devices - 1
        assert function(-1) == -1


def set_device(world):
    C._cuda_setDevice(world.devices - 1)
    assert C._cuda_getDevice() == world.devices - 1
    C._cuda_setDevice(0)


def streams(world):
    before = C._cuda_getCurrentStream(0)
    assert before == C._cuda_getDefaultStream(0)
    side = torch.cuda.Stream()
    C._cuda_setStream(side.stream_id, side.device_index, side.device_type)
    assert torch.cuda.current_stream() == side
    assert C._cuda_getCurrentRawStream(0) == side.stream_id
    C._cuda_setStream(*before)
    assert C._cuda_getCurrentStream(0) == before


def statistics(world):
    held = torch.ones(1 << 20, device="cuda")
    assert C._cuda_memoryStats(0)["allocated_bytes"]["all"]["current"] >= held.nbytes
    C._cuda_resetPeakMemoryStats(0)
    C._cuda_resetAccumulatedMemoryStats(0)
    C._cuda_emptyCache()


def metadata(world):
    C._cuda_setMemoryMetadata("epoch 1")
    assert C._cuda_getMemoryMetadata() == "epoch 1"
    C._cuda_setMemoryMetadata("")


def workspaces(world):
    assert C._cuda_getCublasWorkspaceSize() == C._cuda_getCublasLtWorkspaceSize() == 0
    C._cuda_resetCublasWorkspaceSize()
    C._cuda_resetCublasLtWorkspaceSize()
    C._cuda_clearCublasWorkspaces()


def sleep(world):
    import time

    start = time.perf_counter()
    C._cuda_sleep(20_000_000)
    assert time.perf_counter() - start >= 0.02


def nothing_to_do(world):
    for name in NOTHING:
        assert getattr(C, name)() is None, name


NOTHING = [
    "_cuda_init",
    "_cuda_synchronize",
    "_cuda_ipc_collect",
    "_cuda_resetPeakHostMemoryStats",
    "_cuda_resetAccumulatedHostMemoryStats",
    "_cuda_getArchFlags",
]
FALSE = [
    "_cuda_isInBadFork",
    "_cuda_isHistoryEnabled",
    "_cuda_isCurrentStreamCapturing",
    "_cuda_get_conv_benchmark_empty_cache",
    "_cuda_tunableop_is_enabled",
    "_cuda_tunableop_tuning_is_enabled",
    "_cuda_record_untuned_is_enabled",
]
VALUES = {
    **dict.fromkeys(FALSE, False),
    "_cuda_getDeviceCount": lambda world: world.devices,
    "_cuda_getDevice": 0,
    "_cuda_getCompiledVersion": 0,
    "_cuda_getAllocatorBackend": "native",
    "_cuda_cudaCachingAllocator_is_enabled": True,
    "_cuda_get_sync_debug_mode": 0,
    "_cuda_get_cudnn_benchmark_limit": 10,
    "_cuda_tunableop_get_filename": "",
    "_cuda_tunableop_get_max_tuning_duration": 30,
    "_cuda_tunableop_get_max_tuning_iterations": 100,
    "_cuda_tunableop_get_results": (),
    "_cuda_tunableop_get_validators": (),
    "_cuda_tunableop_get_rotating_buffer_size": 0,
    "_cuda_tunableop_get_rotation_buffer_size": 0,
}
OTHERS = {
    "_cuda_hasPrimaryContext": same_as(lambda: C._cuda_hasPrimaryContext(0), True),
    "_cuda_canDeviceAccessPeer": same_as(lambda: C._cuda_canDeviceAccessPeer(0, 0), True),
    "_cuda_getMemoryFraction": same_as(lambda: C._cuda_getMemoryFraction(0), 1.0),
    "_cuda_allocationTraceback": same_as(lambda: C._cuda_allocationTraceback(0), None),
    "_cuda_hostMemoryStats": same_as(
        lambda: C._cuda_hostMemoryStats()["allocations"]["current"], 0
    ),
    "_cuda_exchangeDevice": exchange,
    "_cuda_maybeExchangeDevice": exchange,
    "_cuda_setDevice": set_device,
    "_cuda_getCurrentStream": streams,
    "_cuda_getDefaultStream": streams,
    "_cuda_getCurrentRawStream": streams,
    "_cuda_setStream": streams,
    "_cuda_memoryStats": statistics,
    "_cuda_resetPeakMemoryStats": statistics,
    "_cuda_resetAccumulatedMemoryStats": statistics,
    "_cuda_emptyCache": statistics,
    "_cuda_setMemoryMetadata": metadata,
    "_cuda_getMemoryMetadata": metadata,
    "_cuda_getCublasWorkspaceSize": workspaces,
    "_cuda_getCublasLtWorkspaceSize": workspaces,
    "_cuda_resetCublasWorkspaceSize": workspaces,
    "_cuda_resetCublasLtWorkspaceSize": workspaces,
    "_cuda_clearCublasWorkspaces": workspaces,
    "_cuda_sleep": sleep,
    **dict.fromkeys(NOTHING, nothing_to_do),
}
CALLS = {
    **{
        f"torch._C.{name}": same_as(lambda name=name: getattr(C, name)(), expected)
        for name, expected in VALUES.items()
    },
    **{f"torch._C.{name}": check for name, check in OTHERS.items()},
}
