import pytest
import torch


def test_streams_have_an_identity(sim):
    one, other = sim.Stream(device="sim"), sim.Stream(device="sim")
    assert one != other
    assert one.device == torch.device("sim:0")
    assert sim.current_stream() == sim.default_stream()
    assert sim.Stream is torch.Stream


def test_stream_context_switches_stream_and_device(sim):
    stream = sim.Stream("sim:1")
    before = sim.current_stream()
    with sim.stream(stream):
        assert sim.current_stream() == stream
        assert sim.current_device() == 1
    assert sim.current_stream() == before
    assert sim.current_device() == 0
    assert sim.current_stream("sim:1") == sim.default_stream("sim:1")
    with sim.stream(None):
        assert sim.current_stream() == before
    with stream:
        assert torch.accelerator.current_stream() == stream


def test_set_stream_is_per_thread(sim):
    from concurrent.futures import ThreadPoolExecutor

    stream = sim.Stream("sim")
    sim.set_stream(stream)
    try:
        assert sim.current_stream() == stream
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(sim.current_stream).result() == sim.default_stream()
    finally:
        sim.set_stream(sim.default_stream())


def test_waiting_and_querying(sim):
    stream = sim.Stream("sim")
    event = sim.current_stream().record_event()
    stream.wait_event(event)
    stream.wait_stream(sim.current_stream())
    stream.synchronize()
    sim.synchronize()
    sim.synchronize("sim:1")
    torch.accelerator.synchronize()
    assert stream.query()
    assert event.query()
    torch.ones(3, device="sim").record_stream(stream)


def test_events_measure_time(sim):
    import time

    start, end = sim.Event(enable_timing=True), sim.Event(enable_timing=True)
    start.record()
    time.sleep(0.02)
    end.record()
    end.synchronize()
    assert 20 <= start.elapsed_time(end) < 2000
    assert end.elapsed_time(start) < 0


def test_events_that_cannot_measure_say_so(sim):
    recorded = sim.Event(enable_timing=True)
    recorded.record()
    with pytest.raises(ValueError, match="recorded before"):
        sim.Event("sim", enable_timing=True).elapsed_time(recorded)
    plain = sim.Event("sim")
    plain.record()
    with pytest.raises(ValueError, match="enable_timing=True"):
        plain.elapsed_time(recorded)
