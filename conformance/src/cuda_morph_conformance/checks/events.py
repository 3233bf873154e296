"""Events: marks in streams, waiting for them, and the time between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_morph_conformance.expectations import require_equal, require_raises
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from torch import Tensor

    from cuda_morph_conformance.subject import Subject

_A_MINUTE_MS = 60_000.0


@check("CM-EVT-001", level=Level.RUNS, requires=("event.record",), since="1.0", devices=1)
def events_are_recorded(_subject: Subject) -> None:
    """Events MUST take CUDA's arguments and be recorded in the current stream or a given one.

    Fix: implement ``record`` and ``destroyEvent`` of the device guard.
    """
    import torch

    side = torch.cuda.Stream()
    for options in ({}, {"enable_timing": True}, {"blocking": True}):
        event = torch.cuda.Event(**options)
        require(isinstance(event, torch.cuda.Event), f"Event({options}) is a {type(event)}")
        require(event.record() is None, "record() returned a value")
        event.record(side)
        event.record(stream=torch.cuda.current_stream())
    made = side.record_event()
    require(isinstance(made, torch.cuda.Event), f"record_event() gave a {type(made)}")
    given = torch.cuda.Event()
    require(side.record_event(given) is given, "record_event(event) gave another event")


@check("CM-EVT-002", level=Level.RUNS, requires=("event.synchronize",), since="1.0", devices=1)
def host_waits_for_events(_subject: Subject) -> None:
    """Event.synchronize MUST return only when the work before the event is done.

    Fix: implement ``synchronizeEvent`` of the device guard.
    """
    import torch

    host, event = torch.zeros(1), torch.cuda.Event()
    host.copy_(_work().sum().reshape(1), non_blocking=True)
    event.record()
    require(event.synchronize() is None, "synchronize() returned a value")
    require_equal(host.item(), 256.0 * 256.0, "a result that the host reads afterwards")


@check("CM-EVT-003", level=Level.RUNS, requires=("event.query",), since="1.0", devices=1)
def events_tell_when_reached(_subject: Subject) -> None:
    """Event.query MUST be True for an event not recorded, and once a recorded one was reached.

    Fix: implement ``queryEvent`` of the device guard.
    """
    import torch

    event = torch.cuda.Event()
    require(event.query() is True, "query() of an event that was never recorded")
    _work()
    event.record()
    require(isinstance(event.query(), bool), f"query() is {event.query()!r}")
    event.synchronize()
    require(event.query() is True, "query() after synchronize()")


@check("CM-EVT-004", level=Level.RUNS, requires=("event.wait",), since="1.0", devices=1)
def streams_wait_for_events(_subject: Subject) -> None:
    """Event.wait MUST hold the current stream, or a given one, until the event is reached.

    Fix: implement ``block`` of the device guard.
    """
    import torch

    producer, event = torch.cuda.Stream(), torch.cuda.Event()
    producer.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(producer):
        made = _work()
        event.record()
    consumer = torch.cuda.Stream()
    event.wait(consumer)
    with torch.cuda.stream(consumer):
        first = made * 3
    event.wait()
    second = made * 4
    torch.cuda.synchronize()
    for what, seen, expected in (("wait(stream)", first, 3.0), ("wait()", second, 4.0)):
        require(bool((seen == expected).all().item()), f"{what}: {seen[0, 0].item()}")


@check("CM-EVT-005", level=Level.RUNS, requires=("event.timing",), since="1.0", devices=1)
def time_runs_forward(_subject: Subject) -> None:
    """elapsed_time MUST be milliseconds that are not negative, and grow with the work between.

    Fix: implement ``elapsedTime`` of the device guard, in milliseconds, from end minus start.
    """
    import torch

    marks = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
    marks[0].record()
    _work()
    marks[1].record()
    for _ in range(8):
        _work()
    marks[2].record()
    marks[2].synchronize()
    short, long = marks[0].elapsed_time(marks[1]), marks[0].elapsed_time(marks[2])
    require(isinstance(short, float), f"elapsed_time is a {type(short).__name__}")
    require(0 <= short <= long < _A_MINUTE_MS, f"{short} ms for a part, {long} ms for the whole")
    parts = short + marks[1].elapsed_time(marks[2])
    require(abs(parts - long) <= 0.01 * long + 0.1, f"the parts take {parts} ms, the whole {long}")
    require_equal(marks[0].elapsed_time(marks[0]), 0.0, "time from an event to itself")


@check("CM-EVT-006", level=Level.RUNS, requires=("event.timing",), since="1.0", devices=1)
def time_is_near_the_hosts(_subject: Subject) -> None:
    """elapsed_time around synchronized work MUST be of the order of the host's own clock.

    Fix: return milliseconds; microseconds or cycles are the usual mistake.
    """
    import time

    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    before = time.perf_counter()
    start.record()
    _work()
    torch.cuda.synchronize()
    time.sleep(0.03)
    end.record()
    end.synchronize()
    host = (time.perf_counter() - before) * 1e3
    device = start.elapsed_time(end)
    require(device <= host * 1.1 + 1, f"the device counts {device} ms, the host {host} ms")
    require(device >= 1.0, f"the device counts {device} ms for more than 30 ms between two records")


@check("CM-EVT-007", level=Level.RUNS, requires=("event.timing",), since="1.0", devices=1)
def time_needs_timed_events(_subject: Subject) -> None:
    """elapsed_time MUST raise for events without timing, and for events not recorded.

    Fix: raise in ``elapsedTime`` when an event has no time to compare.
    """
    import torch

    errors = (RuntimeError, ValueError)
    plain = torch.cuda.Event(), torch.cuda.Event()
    timed = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for event in plain:
        event.record()
    torch.cuda.synchronize()
    require_raises(errors, plain[0].elapsed_time, plain[1], what="time between untimed events")
    require_raises(errors, timed[0].elapsed_time, timed[1], what="time between unrecorded events")


@check("CM-EVT-008", level=Level.RUNS, requires=("event.record",), since="1.0", devices=1)
def events_can_be_reused(_subject: Subject) -> None:
    """An event recorded again MUST stand for its last record only.

    Fix: let ``record`` replace the former mark of the event.
    """
    import torch

    event = torch.cuda.Event()
    host = torch.zeros(4)
    for number in range(4):
        host[number : number + 1].copy_((_work().mean() * number).reshape(1), non_blocking=True)
        event.record()
    event.synchronize()
    require_equal(host.tolist(), [0.0, 1.0, 2.0, 3.0], "results before the last record")


@check("CM-EVT-009", level=Level.RUNS, requires=("event.ipc",), since="1.0", devices=1)
def events_have_handles(_subject: Subject) -> None:
    """An event made with interprocess=True MUST give a handle that another process can open.

    Fix: implement the handles of the event class, or claim ``event.ipc`` as not_yet.
    """
    import torch

    event = torch.cuda.Event(interprocess=True)
    event.record()
    handle = event.ipc_handle()
    require(isinstance(handle, bytes) and handle, f"the handle is {handle!r}")
    device = torch.device("cuda", torch.cuda.current_device())
    opened = torch.cuda.Event.from_ipc_handle(device, handle)
    opened.synchronize()
    require(opened.query() is True, "the opened event was not reached")


def _work() -> Tensor:
    """A few matrix products; gives ones."""
    import torch

    value = torch.ones(256, 256, device="cuda")
    for _ in range(2):
        value = (value @ value) / value.shape[0]
    return value
