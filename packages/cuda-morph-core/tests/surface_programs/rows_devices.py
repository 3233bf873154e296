"""Calls for the rows about devices, streams, events and properties."""

from __future__ import annotations

import torch
from world import raises

cuda = torch.cuda
LAST = {"sim": 1, "cpu": 0}
FIELDS = [
    "name",
    "major",
    "minor",
    "total_memory",
    "multi_processor_count",
    "is_integrated",
    "is_multi_gpu_board",
    "max_threads_per_multi_processor",
    "max_threads_per_block",
    "warp_size",
    "regs_per_multiprocessor",
    "shared_memory_per_block",
    "shared_memory_per_block_optin",
    "shared_memory_per_multiprocessor",
    "L2_cache_size",
    "clock_rate",
    "memory_clock_rate",
    "memory_bus_width",
    "gcnArchName",
    "uuid",
    "pci_bus_id",
    "pci_device_id",
    "pci_domain_id",
]


def device_count(world):
    assert cuda.device_count() == world.devices


def current_device(world):
    last = LAST[world.backend.partition(":")[0]]
    with cuda.device(last):
        assert cuda.current_device() == last
    assert cuda.current_device() == 0


def set_device(world):
    last = LAST[world.backend.partition(":")[0]]
    try:
        for device in (last, f"cuda:{last}", torch.device("cuda", last)):
            cuda.set_device(0)
            cuda.set_device(device)
            assert cuda.current_device() == last
    finally:
        cuda.set_device(0)
    raises(RuntimeError, cuda.set_device, 50)


def device(world):
    last = LAST[world.backend.partition(":")[0]]
    with cuda.device(f"cuda:{last}"):
        assert torch.ones(1, device="cuda").device == world.device(last)
    with cuda.device(None), cuda.device(-1):
        assert cuda.current_device() == 0


def device_of(world):
    last = LAST[world.backend.partition(":")[0]]
    with cuda.device_of(torch.ones(1, device=f"cuda:{last}")):
        assert cuda.current_device() == last
    with cuda.device_of(torch.ones(1)):
        assert cuda.current_device() == 0


def is_available(world):
    assert cuda.is_available() is (world.view == "cuda")


def init(world):
    assert cuda.init() is None
    assert cuda.is_initialized() is True


def is_initialized(world):
    assert cuda.is_initialized() is True


def synchronize(world):
    for device in (None, 0, "cuda", torch.device("cuda", 0)):
        assert cuda.synchronize(device) is None


def can_device_access_peer(world):
    last = LAST[world.backend.partition(":")[0]]
    assert cuda.can_device_access_peer(0, last) in (True, False)
    raises(AssertionError, cuda.can_device_access_peer, 0, 50)


def get_device_name(world):
    assert isinstance(cuda.get_device_name(), str)
    assert cuda.get_device_name(0) == cuda.get_device_properties(0).name != ""


def get_device_capability(world):
    for device in (None, 0, "cuda:0", torch.device("cuda")):
        major, minor = cuda.get_device_capability(device)
        assert (major, minor) == (8, 0)


def get_device_properties(world):
    properties = cuda.get_device_properties("cuda")
    missing = [name for name in FIELDS if getattr(properties, name, None) is None]
    assert missing == []
    assert properties.total_memory == cuda.mem_get_info()[1]
    assert properties.multi_processor_count > 0
    assert properties.name in repr(properties)
    raises(AttributeError, getattr, properties, "no_such_field")
    assert hasattr(properties, "no_such_field") is False


def get_arch_list(world):
    assert cuda.get_arch_list() == []


def get_gencode_flags(world):
    assert cuda.get_gencode_flags() == ""


def is_bf16_supported(world):
    assert cuda.is_bf16_supported() is True
    assert cuda.is_bf16_supported(including_emulation=False) is True


def is_tf32_supported(world):
    assert cuda.is_tf32_supported() is False


def current_stream(world):
    assert cuda.current_stream() == cuda.default_stream()
    assert cuda.current_stream("cuda:0") == cuda.current_stream(0)
    assert isinstance(cuda.current_stream(), cuda.Stream)


def default_stream(world):
    assert cuda.default_stream(0) == cuda.default_stream(torch.device("cuda:0"))
    assert cuda.default_stream() != cuda.Stream()


def set_stream(world):
    stream, before = cuda.Stream(), cuda.current_stream()
    try:
        cuda.set_stream(stream)
        assert cuda.current_stream() == stream
    finally:
        cuda.set_stream(before)
    assert cuda.set_stream(None) is None
    assert cuda.current_stream() == before


def stream(world):
    side, before = cuda.Stream(), cuda.current_stream()
    with cuda.stream(stream=side):
        assert cuda.current_stream() == side
    with cuda.stream(None):
        assert cuda.current_stream() == before
    assert cuda.current_stream() == before


def stream_context(world):
    side = cuda.Stream()
    with cuda.StreamContext(side):
        assert cuda.current_stream() == side
    assert isinstance(cuda.stream(side), cuda.StreamContext)


def stream_class(world):
    first, second = cuda.Stream(), cuda.Stream(priority=-1)
    assert first == cuda.Stream(
        stream_id=first.stream_id,
        device_index=first.device_index,
        device_type=first.device_type,
    )
    assert first != second
    assert len({first, second}) == 2
    assert first.query() is True
    first.wait_stream(second)
    event = second.record_event()
    first.wait_event(event)
    first.synchronize()
    assert first.device.type == world.shown
    assert isinstance(first.cuda_stream, int)
    assert first.cuda_stream != second.cuda_stream
    x = torch.ones(2, device="cuda")
    x.record_stream(first)
    assert cuda.Stream is torch.cuda.streams.Stream


def event_class(world):
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    start.record()
    cuda._sleep(20_000_000)
    end.record(cuda.current_stream())
    end.synchronize()
    assert start.query() is True
    assert end.query() is True
    assert 0 <= start.elapsed_time(end) < 10_000
    end.wait()
    end.wait(cuda.current_stream())
    assert cuda.Event is torch.cuda.streams.Event


def is_current_stream_capturing(world):
    assert cuda.is_current_stream_capturing() is False


def cudart(world):
    runtime = cuda.cudart()
    assert runtime.cudaMemGetInfo(0)[1] == cuda.mem_get_info()[1]
    assert runtime.cudaGetErrorString(runtime.cudaError.success) == "no error"
    assert "CM-E07" in raises(NotImplementedError, runtime.cudaStreamCreate, 0)


def check_error(world):
    assert cuda.check_error(0) is None
    raises(cuda.CudaError, cuda.check_error, 2)


def cuda_error(world):
    assert issubclass(cuda.CudaError, RuntimeError)
    assert "2" in str(cuda.CudaError(2))


def cuda_status(world):
    assert cuda.cudaStatus.SUCCESS == 0


def list_gpu_processes(world):
    assert cuda.list_gpu_processes().startswith("GPU:0")


CALLS = {
    "torch.cuda.device_count": device_count,
    "torch.cuda.current_device": current_device,
    "torch.cuda.set_device": set_device,
    "torch.cuda.device": device,
    "torch.cuda.device_of": device_of,
    "torch.cuda.is_available": is_available,
    "torch.cuda.init": init,
    "torch.cuda.is_initialized": is_initialized,
    "torch.cuda.synchronize": synchronize,
    "torch.cuda.can_device_access_peer": can_device_access_peer,
    "torch.cuda.get_device_name": get_device_name,
    "torch.cuda.get_device_capability": get_device_capability,
    "torch.cuda.get_device_properties": get_device_properties,
    "torch.cuda.get_arch_list": get_arch_list,
    "torch.cuda.get_gencode_flags": get_gencode_flags,
    "torch.cuda.is_bf16_supported": is_bf16_supported,
    "torch.cuda.is_tf32_supported": is_tf32_supported,
    "torch.cuda.current_stream": current_stream,
    "torch.cuda.default_stream": default_stream,
    "torch.cuda.set_stream": set_stream,
    "torch.cuda.stream": stream,
    "torch.cuda.StreamContext": stream_context,
    "torch.cuda.Stream": stream_class,
    "torch.cuda.Event": event_class,
    "torch.cuda.is_current_stream_capturing": is_current_stream_capturing,
    "torch.cuda.cudart": cudart,
    "torch.cuda.check_error": check_error,
    "torch.cuda.CudaError": cuda_error,
    "torch.cuda.cudaStatus": cuda_status,
    "torch.cuda.list_gpu_processes": list_gpu_processes,
}
