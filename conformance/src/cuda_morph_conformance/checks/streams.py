"""Streams: queues of device work, and the order between them."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from cuda_morph_conformance.expectations import require_equal, same_device, shown_type
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from torch import Tensor

    from cuda_morph_conformance.subject import Subject

_CREATE = ("stream.create",)


@check("CM-STRM-001", level=Level.RUNS, requires=_CREATE, since="1.0", devices=1)
def streams_are_created(subject: Subject) -> None:
    """torch.cuda.Stream MUST make streams of the device that differ from each other.

    Fix: implement ``getNewStream`` of the device guard.
    """
    import torch

    index = torch.cuda.current_device()
    first, second = torch.cuda.Stream(), torch.cuda.Stream(device=f"cuda:{index}")
    require(first != second, "two new streams are equal")
    require(len({first, second}) == 2, "two new streams have one hash")  # noqa: PLR2004
    for stream in (first, second):
        require(isinstance(stream, torch.cuda.Stream), f"it is a {type(stream)}")
        require_equal(stream.device_index, index, "device_index of a stream")
        require_equal(stream.device.type, shown_type(subject), "device.type of a stream")
        require(isinstance(stream.cuda_stream, int), f"cuda_stream is {stream.cuda_stream!r}")
    require(first.cuda_stream != second.cuda_stream, "two new streams have one handle")
    twin = torch.cuda.Stream(
        stream_id=first.stream_id,
        device_index=first.device_index,
        device_type=first.device_type,
    )
    require(twin == first, "a stream made from another's identity differs from it")


@check("CM-STRM-002", level=Level.RUNS, requires=_CREATE, since="1.0", devices=1)
def work_on_streams_is_right(_subject: Subject) -> None:
    """Work on several streams, each behind the other, MUST give the results of one stream.

    Fix: launch kernels on the current stream of the device, and let waiting order the streams.
    """
    import torch

    streams = [torch.cuda.Stream() for _ in range(4)]
    value = torch.zeros(1 << 16, device="cuda")
    last = torch.cuda.current_stream()
    for number, stream in enumerate(streams * 3):
        stream.wait_stream(last)
        with torch.cuda.stream(stream):
            value.mul_(2).add_(number)
        last = stream
    torch.cuda.current_stream().wait_stream(last)
    expected = 0
    for number in range(12):
        expected = expected * 2 + number
    torch.cuda.synchronize()
    require(bool((value == expected).all().item()), f"{value[0].item()}, expected {expected}")


@check("CM-STRM-003", level=Level.RUNS, requires=("stream.current",), since="1.0", devices=1)
def current_stream_is_set(_subject: Subject) -> None:
    """set_stream MUST make a stream current, and current_stream give it back.

    Fix: implement ``exchangeStream`` and ``getStream`` of the device guard, per thread.
    """
    import torch

    before, stream = torch.cuda.current_stream(), torch.cuda.Stream()
    index = torch.cuda.current_device()
    try:
        torch.cuda.set_stream(stream)
        require(torch.cuda.current_stream() == stream, "current_stream() is another one")
        require(torch.cuda.current_stream(index) == stream, "current_stream(index) is another one")
        torch.cuda.set_stream(None)
        require(torch.cuda.current_stream() == stream, "set_stream(None) changed the stream")
    finally:
        torch.cuda.set_stream(before)
    require(torch.cuda.current_stream() == before, "the former stream did not come back")
    require(torch.cuda.current_stream() != stream, "the stream is still current")


@check("CM-STRM-004", level=Level.RUNS, requires=("stream.current",), since="1.0", devices=1)
def threads_have_their_own_stream(_subject: Subject) -> None:
    """Each thread MUST have its own current stream, which begins as the default one.

    Fix: keep the current stream in thread-local storage.
    """
    import torch

    index, seen = torch.cuda.current_device(), list[bool]()

    def other() -> None:
        torch.cuda.set_device(index)
        seen.append(torch.cuda.current_stream() == torch.cuda.default_stream())
        torch.cuda.set_stream(torch.cuda.Stream())

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        require(torch.cuda.current_stream() == side, "another thread changed this thread's stream")
    require_equal(seen, [True], "a new thread's stream is the default one")


@check("CM-STRM-005", level=Level.RUNS, requires=("stream.context",), since="1.0", devices=1)
def stream_context_restores(_subject: Subject) -> None:
    """``with torch.cuda.stream(s)`` MUST make s current, and the former stream afterwards.

    Fix: implement ``exchangeStream`` of the device guard so that it returns the former stream.
    """
    import torch

    before, first, second = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(first):
        require(torch.cuda.current_stream() == first, "the outer stream is not current")
        with torch.cuda.stream(stream=second):
            require(torch.cuda.current_stream() == second, "the inner stream is not current")
        require(torch.cuda.current_stream() == first, "the outer stream did not come back")
        with torch.cuda.stream(None):
            require(torch.cuda.current_stream() == first, "stream(None) changed the stream")
    with contextlib.suppress(LookupError), torch.cuda.stream(first):
        _fail()
    require(torch.cuda.current_stream() == before, "the former stream did not come back")
    with first:
        require(torch.cuda.current_stream() == first, "`with stream:` does not make it current")
    require(torch.cuda.current_stream() == before, "`with stream:` does not restore")


@check("CM-STRM-006", level=Level.RUNS, requires=("stream.default",), since="1.0", devices=1)
def default_stream_is_one(_subject: Subject) -> None:
    """default_stream MUST be the same stream each time, current at first, and no created one.

    Fix: implement ``getDefaultStream`` of the device guard; its id is 0.
    """
    import torch

    index = torch.cuda.current_device()
    default = torch.cuda.default_stream()
    for device in (index, f"cuda:{index}", torch.device("cuda", index)):
        require(torch.cuda.default_stream(device) == default, f"default_stream({device!r}) differs")
    require(torch.cuda.current_stream() == default, "the default stream is not current at first")
    require(
        all(torch.cuda.Stream() != default for _ in range(8)), "a new stream is the default one"
    )
    with torch.cuda.stream(torch.cuda.Stream()):
        require(torch.cuda.default_stream() == default, "another stream became the default one")


@check("CM-STRM-007", level=Level.RUNS, requires=("stream.wait",), since="1.0", devices=1)
def streams_wait_for_each_other(_subject: Subject) -> None:
    """wait_stream and wait_event MUST order the work of one stream behind that of another.

    Fix: implement ``block`` and ``record`` of the device guard.
    """
    import torch

    producer, consumer = torch.cuda.Stream(), torch.cuda.Stream()
    base = torch.ones(512, 512, device="cuda")
    producer.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(producer):
        made = _chain(base)
        event = producer.record_event()
    with torch.cuda.stream(consumer):
        consumer.wait_event(event)
        first = made * 2
        consumer.wait_stream(producer)
        second = made + 1
    torch.cuda.synchronize()
    for what, seen, expected in (("wait_event", first, 2.0), ("wait_stream", second, 2.0)):
        require(bool((seen == expected).all().item()), f"{what}: {seen[0, 0].item()}")


@check("CM-STRM-008", level=Level.RUNS, requires=("stream.synchronize",), since="1.0", devices=1)
def host_waits_for_streams(_subject: Subject) -> None:
    """Stream.synchronize MUST return only when the stream's work is done.

    Fix: implement ``synchronizeStream`` of the device guard.
    """
    import torch

    side = torch.cuda.Stream()
    host = torch.zeros(1)
    base = torch.ones(512, 512, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        host.copy_(_chain(base).sum().reshape(1), non_blocking=True)
    require(side.synchronize() is None, "synchronize() returned a value")
    require_equal(host.item(), 512.0 * 512.0, "a result that the host reads afterwards")


@check("CM-STRM-009", level=Level.RUNS, requires=("stream.query",), since="1.0", devices=1)
def streams_tell_when_done(_subject: Subject) -> None:
    """Stream.query MUST be a bool, and True once the stream was synchronized.

    Fix: implement ``queryStream`` of the device guard.
    """
    import torch

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        _chain(torch.ones(256, 256, device="cuda"))
        require(isinstance(side.query(), bool), f"query() is {side.query()!r}")
    side.synchronize()
    require(side.query() is True, "query() is not True after synchronize()")
    torch.cuda.synchronize()
    require(torch.cuda.default_stream().query() is True, "the default stream is not done")


@check("CM-STRM-010", level=Level.RUNS, requires=("stream.priority",), since="1.0", devices=1)
def priorities_are_taken(_subject: Subject) -> None:
    """Streams MUST take a priority within Stream.priority_range and tell one that lies in it.

    Fix: map priorities to what the device has; one level for all is allowed.
    """
    import torch

    least, greatest = torch.cuda.Stream.priority_range()
    require(greatest <= least, f"priority_range() is ({least}, {greatest}); lower is more urgent")
    for priority in (0, -1, greatest, least):
        stream = torch.cuda.Stream(priority=priority)
        told = stream.priority
        require(greatest <= told <= least, f"Stream(priority={priority}) has priority {told}")
        with torch.cuda.stream(stream):
            value = torch.ones(8, device="cuda") * 2
        stream.synchronize()
        require_equal(value.sum().item(), 16.0, f"a sum on a stream of priority {priority}")


@check("CM-STRM-011", level=Level.RUNS, requires=("stream.record",), since="1.0", devices=1)
def recorded_memory_is_kept(_subject: Subject) -> None:
    """Memory freed after record_stream MUST NOT be reused before that stream's work is done.

    Fix: implement ``recordDataPtrOnStream`` of the device guard, or the allocator's recordStream.
    """
    import torch

    side = torch.cuda.Stream()
    results = []
    for number in range(8):
        value = torch.full((1 << 18,), float(number), device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            results.append(value + 0)
        value.record_stream(side)
        del value
        torch.full((1 << 18,), -1.0, device="cuda")
    torch.cuda.synchronize()
    wrong = [n for n, seen in enumerate(results) if not bool((seen == n).all().item())]
    require(not wrong, f"values {wrong} were overwritten before they were read")


@check("CM-STRM-012", level=Level.RUNS, requires=("stream.external",), since="1.0", devices=1)
def external_streams_are_wrapped(_subject: Subject) -> None:
    """ExternalStream MUST wrap the handle of another library's stream.

    Fix: map ``ExternalStream`` through ``cuda_morph_api_mappings``, or claim ``stream.external``
    as never.
    """
    import torch

    own = torch.cuda.Stream()
    wrapped = torch.cuda.ExternalStream(own.cuda_stream)
    require_equal(wrapped.cuda_stream, own.cuda_stream, "the handle")
    with torch.cuda.stream(wrapped):
        value = torch.ones(8, device="cuda") * 2
    wrapped.synchronize()
    require_equal(value.sum().item(), 16.0, "a sum on the wrapped stream")


@check(
    "CM-STRM-013",
    level=Level.RUNS,
    requires=("stream.context", "device.multiple"),
    since="1.0",
    devices=2,
)
def streams_of_other_devices_move_there(_subject: Subject) -> None:
    """Entering a stream of another device MUST make that device current, and restore it.

    Fix: let the stream context exchange the device as well as the stream.
    """
    import torch

    with same_device():
        torch.cuda.set_device(0)
        stream = torch.cuda.Stream(device=1)
        require_equal(stream.device_index, 1, "device_index of Stream(device=1)")
        with torch.cuda.stream(stream):
            require_equal(torch.cuda.current_device(), 1, "current device inside")
            require(torch.cuda.current_stream(1) == stream, "the stream is not current on device 1")
        require_equal(torch.cuda.current_device(), 0, "current device afterwards")
        require(torch.cuda.current_stream(1) != stream, "the stream is still current on device 1")


@check(
    "CM-STRM-014",
    level=Level.RUNS,
    requires=("stream.default", "device.multiple"),
    since="1.0",
    devices=2,
)
def each_device_has_its_default_stream(subject: Subject) -> None:
    """default_stream of a device MUST be a stream of that device, whichever device is current.

    Fix: use the index that ``default_stream`` is given, and the current device without one.
    """
    import torch

    for index in range(subject.device_count):
        stream = torch.cuda.default_stream(index)
        require_equal(stream.device_index, index, f"device_index of default_stream({index})")
    with torch.cuda.device(1):
        stream = torch.cuda.default_stream()
        require_equal(stream.device_index, 1, "device_index of default_stream() on device 1")


def _chain(value: Tensor) -> Tensor:
    """Enough matrix products that a device is still busy when the call returns; gives ones."""
    for _ in range(4):
        value = (value @ value) / value.shape[0]
    return value


def _fail() -> None:
    raise LookupError
