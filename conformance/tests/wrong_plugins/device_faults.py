"""Faults of the device module and of the device runtime: devices, memory, streams, events, seeds."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

from fault import in_runtime, on_device


@on_device("CM-DEV-012")
def properties_count_in_kib(device: Any) -> None:
    """The properties give the card's memory in KiB."""
    right = device.get_device_properties

    def wrong(index: Any = None) -> Any:
        found = right(index)
        fields = {name: getattr(found, name) for name in dir(found) if name[0] != "_"}
        return SimpleNamespace(**{**fields, "total_memory": found.total_memory >> 10})

    device.get_device_properties = wrong


@on_device("CM-DEV-011")
def processors_are_not_counted(device: Any) -> None:
    """The properties say that the card has no multiprocessor."""
    right = device.get_device_properties

    def wrong(index: Any = None) -> Any:
        found = right(index)
        fields = {name: getattr(found, name) for name in dir(found) if name[0] != "_"}
        return SimpleNamespace(**{**fields, "multi_processor_count": 0})

    device.get_device_properties = wrong


@on_device("CM-DEV-013")
def the_card_has_no_name(device: Any) -> None:
    """The card's name is empty."""
    right = device.get_device_properties

    def wrong(index: Any = None) -> Any:
        found = right(index)
        fields = {name: getattr(found, name) for name in dir(found) if name[0] != "_"}
        return SimpleNamespace(**{**fields, "name": ""})

    device.get_device_properties = wrong
    device.get_device_name = lambda _index=None: ""


@in_runtime("CM-DEV-014")
def capability_is_a_fraction(runtime: Any) -> None:
    """Major and minor of the compute capability are floats."""
    right = runtime.properties

    def properties(index: int) -> Any:
        found = right(index)
        found.__dict__.update(major=8.0, minor=0.0)
        return found

    runtime.properties = properties


@in_runtime("CM-DEV-016")
def hidden_devices_are_counted(runtime: Any) -> None:
    """It counts the cards of the machine, whichever of them are visible."""
    runtime.device_count = lambda: 2


@in_runtime("CM-DEV-006")
def other_threads_cannot_set_the_device(runtime: Any) -> None:
    """Setting the device has no effect in a second thread."""
    right = runtime.set_device

    def set_device(index: int) -> None:
        if threading.current_thread() is threading.main_thread():
            right(index)

    runtime.set_device = set_device


@in_runtime("CM-DEV-002", "CM-ERR-010")
def absent_devices_are_the_last_one(runtime: Any) -> None:
    """Setting a device that is not there takes the last one."""
    right = runtime.set_device
    runtime.set_device = lambda index: right(min(index, runtime.device_count() - 1))


@in_runtime("CM-DEV-010")
def synchronize_takes_no_names(runtime: Any) -> None:
    """Waiting for a device takes its index, and no other way to name it."""
    right = runtime.synchronize

    def synchronize(device: Any = None) -> None:
        if isinstance(device, str):
            raise TypeError("an integer is required")
        right(device)

    runtime.synchronize = synchronize


@on_device("CM-MEM-001")
def freed_memory_stays_counted(device: Any) -> None:
    """The first large block that is freed stays counted for ever, in every figure."""
    last: dict[Any, int] = {}
    leaked = [0]

    def count(figure: Any) -> Any:
        return lambda index=None: figure(index) + leaked[0]

    right = device.memory_allocated

    def memory_allocated(index: Any = None) -> int:
        now = right(index)
        if not leaked[0] and last.get(index, 0) - now >= 32 << 20:
            leaked[0] = last[index] - now
        last[index] = now
        return now + leaked[0]

    stats = device.memory_stats

    def memory_stats(index: Any = None) -> Any:
        found = dict(stats(index))
        for kind in ("allocated_bytes", "reserved_bytes"):
            for moment in ("current", "peak"):
                found[f"{kind}.all.{moment}"] += leaked[0]
        return found

    device.memory_allocated, device.memory_stats = memory_allocated, memory_stats
    for name in ("max_memory_allocated", "memory_reserved", "max_memory_reserved"):
        setattr(device, name, count(getattr(device, name)))


@on_device("CM-MEM-004")
def the_peak_is_never_reset(device: Any) -> None:
    """Resetting the peak does nothing."""
    device.reset_peak_memory_stats = lambda _index=None: None


@on_device("CM-MEM-005")
def reserved_memory_has_no_peak(device: Any) -> None:
    """The peak of reserved memory is always 0."""
    device.max_memory_reserved = lambda _index=None: 0


@on_device("CM-MEM-009")
def free_and_total_are_exchanged(device: Any) -> None:
    """The total of the memory comes first, and what is free second."""
    right = device.mem_get_info
    device.mem_get_info = lambda index=None: (right(index)[1], right(index)[0])


@on_device("CM-MEM-010")
def the_cache_is_never_emptied(device: Any) -> None:
    """What the allocator once took stays reserved, whatever is given back."""
    right, stats, highest = device.memory_reserved, device.memory_stats, {}

    def memory_reserved(index: Any = None) -> int:
        now = right(index)
        highest[index] = max(now, highest.get(index, 0))
        return highest[index]

    def memory_stats(index: Any = None) -> Any:
        return {**stats(index), "reserved_bytes.all.current": memory_reserved(index)}

    device.memory_reserved, device.memory_stats = memory_reserved, memory_stats


@on_device("CM-MEM-011")
def running_totals_are_kept(device: Any) -> None:
    """Restarting the running totals does nothing."""
    device.reset_accumulated_memory_stats = lambda _index=None: None


@on_device("CM-MEM-012")
def devices_are_counted_together(device: Any) -> None:
    """Memory in use is that of all cards, whichever is asked for."""
    right = device.memory_allocated

    def memory_allocated(index: Any = None) -> int:
        right(index)
        return sum(right(each) for each in range(device.device_count()))

    device.memory_allocated = memory_allocated


@on_device("CM-MEM-022")
def failures_are_not_counted(device: Any) -> None:
    """The statistics never count an out-of-memory error."""
    right = device.memory_stats
    device.memory_stats = lambda index=None: {**right(index), "num_ooms": 0}


@on_device("CM-STRM-006")
def the_default_stream_has_two_ids(device: Any) -> None:
    """For a device that is given by name, the default stream is another one."""
    import torch

    right = device.default_stream

    def default_stream(index: Any = None) -> Any:
        found = right(index)
        if not isinstance(index, str):
            return found
        return torch.Stream(
            stream_id=31, device_index=found.device_index, device_type=found.device_type
        )

    device.default_stream = default_stream


@on_device("CM-STRM-014")
def all_devices_have_one_default_stream(device: Any) -> None:
    """The default stream of every card is that of the first."""
    right = device.default_stream
    device.default_stream = lambda _index=None: right(0)


@in_runtime("CM-STRM-010")
def priorities_are_out_of_range(runtime: Any) -> None:
    """A stream says that it has a priority that the card does not have."""
    runtime.stream_class = _kind_of("Stream", priority=property(lambda _stream: 7))


@in_runtime("CM-STRM-009")
def streams_say_one_for_yes(runtime: Any) -> None:
    """Asking a stream whether it is done gives 1 or 0."""
    import torch

    right = torch.Stream.query
    runtime.stream_class = _kind_of("Stream", query=lambda stream: int(right(stream)))


@in_runtime("CM-RNG-004")
def each_device_gets_another_seed(runtime: Any) -> None:
    """A seed for all devices is one more on the second."""
    _generators(runtime, manual_seed=lambda right, seed: right.manual_seed(seed + 1))


@in_runtime("CM-RNG-006")
def states_forget_the_offset(runtime: Any) -> None:
    """A generator's state is its seed, and the numbers begin anew when it is set."""

    def set_state(right: Any, state: Any) -> Any:
        right.set_state(state)
        return right.manual_seed(right.initial_seed())

    _generators(runtime, all_devices=True, set_state=set_state)


@in_runtime("CM-RNG-002")
def seeds_lose_their_upper_half(runtime: Any) -> None:
    """The seed that is read back has 32 bits of the one that was set."""
    lower = (1 << 32) - 1
    _generators(runtime, all_devices=True, initial_seed=lambda right: right.initial_seed() & lower)


class _Handed:
    """A default generator with some other methods."""

    def __init__(self, right: Any, methods: dict[str, Any]) -> None:
        self._right, self._methods = right, methods

    def __getattr__(self, name: str) -> Any:
        wrong = self._methods.get(name)
        if wrong is None:
            return getattr(self._right, name)
        return lambda *arguments: wrong(self._right, *arguments)


def _generators(runtime: Any, *, all_devices: bool = False, **methods: Any) -> None:
    found = runtime.default_generators()
    made = [
        _Handed(one, methods) if index or all_devices else one for index, one in enumerate(found)
    ]
    runtime.default_generators = lambda: tuple(made)


def _kind_of(name: str, **members: Any) -> type:
    """Returns a class of streams or events; PyTorch's own ones count as its objects."""
    import torch

    right = getattr(torch, name)

    class Kind(type(right)):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, right)

    return Kind(name, (right,), members)
