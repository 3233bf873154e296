"""Streams and events of a device that finishes its work before a call returns: the CPU."""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

if TYPE_CHECKING:
    from typing_extensions import Self

_CPU = 0
_stream_ids = itertools.count(1)
_current = threading.local()


class HostStream(torch.Stream):  # type: ignore[misc, unused-ignore]
    """A stream on which every operation has already finished.

    Args:
        device: Ignored but for its validity; the CPU is one device.
        priority: Accepted without effect; all streams have priority 0.
    """

    priority = 0

    def __new__(cls, device: Any = None, priority: int = 0, **identity: Any) -> Self:
        """Creates a stream, or the handle of an existing one from its ``stream_id``."""
        del device, priority
        stream_id = identity.get("stream_id")
        stream: Self = super().__new__(
            cls,
            stream_id=next(_stream_ids) if stream_id is None else stream_id,
            device_index=0,
            device_type=_CPU,
        )
        return stream

    @property
    def device(self) -> torch.device:
        """The CPU."""
        return torch.device("cpu")

    @property
    def cuda_stream(self) -> int:
        """A number that identifies the stream; no pointer stands behind it."""
        return int(self.stream_id)

    def query(self) -> bool:
        """Returns True: nothing is ever pending."""
        return True

    def synchronize(self) -> None:
        """Returns at once."""

    def wait_event(self, event: Any) -> None:
        """Returns at once: the event's work has finished."""

    def wait_stream(self, stream: Any) -> None:
        """Returns at once: the stream's work has finished."""

    def record_event(self, event: Any = None) -> Any:
        """Records `event`, or a new one, now."""
        event = HostEvent() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Self:
        self._previous = current_stream()
        set_current_stream(self)
        return self

    def __exit__(self, *_error: object) -> None:
        set_current_stream(self._previous)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostStream) and other.stream_id == self.stream_id

    def __hash__(self) -> int:
        return hash((_CPU, self.stream_id))


class HostEvent(torch.Event):  # type: ignore[misc, unused-ignore]
    """An event that takes its time from the host's clock.

    Args:
        enable_timing: Whether `elapsed_time` may be asked for.
        blocking: Accepted for compatibility.
        interprocess: Accepted for compatibility.
        external: Accepted for compatibility.
    """

    def __new__(
        cls,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> Self:
        """Creates an event that has not been recorded."""
        del blocking, interprocess, external
        event: Self = super().__new__(cls, "cpu")
        event._timed = bool(enable_timing)
        event._seconds = None
        return event

    _timed: bool
    _seconds: float | None

    def record(self, stream: Any = None) -> None:
        """Takes the time; all work before this call has finished."""
        del stream
        self._seconds = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Returns at once."""

    def query(self) -> bool:
        """Returns True: the work before the record has finished."""
        return True

    def synchronize(self) -> None:
        """Returns at once."""

    def elapsed_time(self, end_event: HostEvent) -> float:
        """Returns milliseconds from this event to `end_event`.

        Raises:
            RuntimeError: One of the events was not recorded or not made for timing.
        """
        if not (self._timed and end_event._timed):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        if self._seconds is None or end_event._seconds is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end_event._seconds - self._seconds) * 1e3


def default_stream() -> HostStream:
    """Returns the stream with id 0."""
    return HostStream(stream_id=0)


def current_stream() -> HostStream:
    """Returns the calling thread's stream."""
    stream: HostStream | None = getattr(_current, "stream", None)
    return default_stream() if stream is None else stream


def set_current_stream(stream: Any) -> None:
    """Makes `stream` the calling thread's stream."""
    _current.stream = stream if isinstance(stream, HostStream) else default_stream()
