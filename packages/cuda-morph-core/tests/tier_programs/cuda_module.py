"""The functions of ``torch.cuda``."""

from __future__ import annotations

import torch
from torch.cuda import device_count as early_device_count
from torch.cuda import is_available as early_is_available
from world import only, raises


def check_availability_follows_the_view(world):
    assert torch.cuda.is_available() is (world.view == "cuda")
    assert early_is_available() is (world.view == "cuda")
    assert torch.cuda.is_initialized()


def check_the_driver_of_nvidia_s_triton_sees_none(world):
    """It loads libcuda where it is told that there is CUDA."""
    reader = {"__name__": "triton.backends.nvidia.driver", "torch": torch}
    exec("answer = torch.cuda.is_available()", reader)
    assert reader["answer"] is False


def check_device_count(world):
    assert torch.cuda.device_count() == early_device_count() == world.devices


def check_current_device(world):
    assert torch.cuda.current_device() == 0
    torch.cuda.set_device("cuda:0")
    torch.cuda.set_device(torch.device("cuda", 0))
    torch.cuda.set_device(0)
    assert torch.cuda.current_device() == 0


@only(backends=("sim",))
def check_changing_the_device(world):
    try:
        torch.cuda.set_device(1)
        assert torch.cuda.current_device() == 1
        assert torch.ones(1, device="cuda").device == world.device(1)
        assert torch.ones(1).cuda().device == world.device(1)
    finally:
        torch.cuda.set_device(0)


@only(backends=("sim",))
def check_device_context(world):
    for device in (1, "cuda:1", torch.device("cuda:1")):
        with torch.cuda.device(device):
            assert torch.cuda.current_device() == 1
        assert torch.cuda.current_device() == 0
    with torch.cuda.device_of(torch.ones(1, device="cuda:1")):
        assert torch.cuda.current_device() == 1


def check_a_device_that_is_not_there(world):
    raises(RuntimeError, torch.cuda.set_device, 99)
    assert torch.cuda.current_device() == 0


def check_identity_of_the_device(world):
    name = torch.cuda.get_device_name()
    properties = torch.cuda.get_device_properties("cuda:0")
    assert isinstance(name, str)
    assert name == properties.name
    major, minor = torch.cuda.get_device_capability(0)
    assert (properties.major, properties.minor) == (major, minor)
    assert properties.total_memory > 0


def check_streams(world):
    stream = torch.cuda.Stream()
    assert isinstance(stream, torch.Stream)
    assert isinstance(stream, torch.cuda.Stream)
    before = torch.cuda.current_stream()
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
        result = torch.ones(2, device="cuda") + 1
    assert torch.cuda.current_stream() == before == torch.cuda.default_stream()
    before.wait_stream(stream)
    stream.synchronize()
    assert stream.query()
    result.record_stream(before)
    assert result.tolist() == [2, 2]


def check_stream_handles_are_numbers(world):
    assert isinstance(torch.cuda.Stream().cuda_stream, int)
    assert torch.cuda.current_stream().cuda_stream == torch.cuda.default_stream().cuda_stream


def check_stream_priority(world):
    stream = torch.cuda.Stream(priority=-1)
    assert isinstance(stream, torch.Stream)
    least, greatest = torch.cuda.Stream.priority_range()
    assert greatest <= stream.priority <= least
    assert isinstance(torch.cuda.Stream("cuda:0"), torch.Stream)
    assert isinstance(torch.cuda.Stream(device=torch.device("cuda")), torch.Stream)


def check_events(world):
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    start.record()
    torch.ones(8, device="cuda") @ torch.ones(8, device="cuda")
    end.record()
    end.synchronize()
    assert end.query()
    assert start.elapsed_time(end) >= 0
    torch.cuda.current_stream().wait_event(end)


def check_events_by_position(world):
    start, end = torch.cuda.Event(True), torch.cuda.Event(True, True)
    start.record()
    end.record()
    torch.cuda.synchronize()
    assert start.elapsed_time(end) >= 0


def check_device_neutral_stream_and_event(world):
    assert torch.Stream(device="cuda").device.type == world.shown
    assert torch.Event("cuda").device.type == world.shown
    assert torch.Event(device="cuda") is not None


def check_synchronize(world):
    for device in (None, 0, "cuda", "cuda:0", torch.device("cuda")):
        torch.cuda.synchronize(device)


def check_memory(world):
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    block = torch.ones(1 << 20, device="cuda")
    assert torch.cuda.memory_allocated() >= before
    assert torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated() > 0
    assert torch.cuda.memory_reserved() >= 0
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total
    assert torch.cuda.memory_stats()["allocated_bytes.all.current"] >= 0
    assert "memory" in torch.cuda.memory_summary().lower()
    assert block.numel() == 1 << 20
    torch.cuda.empty_cache()


def check_legacy_current_blas_handle_is_refused_loudly(world):
    assert "CM-E07" in raises(NotImplementedError, torch.cuda.current_blas_handle)


def check_profiler_ranges(world):
    torch.cuda.nvtx.range_push("cuda")
    torch.cuda.nvtx.range_pop()
    with torch.cuda.nvtx.range("step"):
        pass


def check_bf16(world):
    assert torch.cuda.is_bf16_supported() is True


def check_lazy_initialisation(world):
    torch.cuda.init()
    torch.empty(1, device="cuda")


@only(tiers=("T0",))
def check_too_much_memory_is_what_programs_catch(world):
    raises(torch.cuda.OutOfMemoryError, torch.empty, 1 << 50, device="cuda")
    assert torch.ones(2, device="cuda").sum().item() == 2
