"""What a trace collects while the program runs: calls, time and places, per name."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any

from cuda_morph import api_table
from cuda_morph.records import Treatment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cuda_morph.trace.call_sites import Site, SiteFinder

CALL = "call"
"""Kind of a CUDA name; any other kind is the origin of an operator's kernel."""

_SITES_KEPT = 100
"""Places kept per name and thread; calls from further ones are counted without their place."""

_SPEAKING = (Treatment.STUB, Treatment.REFUSE)
"""Treatments that are recorded even where PyTorch's own code, not the program, made the call."""

Key = tuple[str, str]


class Entry:
    """What is known of one name."""

    __slots__ = ("calls", "raised", "seconds", "sites")

    def __init__(self) -> None:
        self.calls = 0
        self.raised = 0
        self.seconds = 0.0
        self.sites: dict[Site, list[float]] = {}
        """Calls and seconds by place, in order of first appearance."""

    def add(self, seconds: float, site: Site, *, raised: bool) -> None:
        """Adds one call."""
        self.calls += 1
        self.raised += raised
        self.seconds += seconds
        known = self.sites.get(site)
        if known is not None:
            known[0] += 1
            known[1] += seconds
        elif len(self.sites) < _SITES_KEPT:
            self.sites[site] = [1, seconds]

    def merge(self, other: Entry) -> None:
        """Adds what another entry has."""
        self.calls += other.calls
        self.raised += other.raised
        self.seconds += other.seconds
        for site, (calls, seconds) in list(other.sites.items()):
            mine = self.sites.setdefault(site, [0, 0.0])
            mine[0] += calls
            mine[1] += seconds


class _ThreadState(threading.local):
    """What one thread has collected; no lock is taken while the program runs."""

    def __init__(self, buffers: list[dict[Key, Entry]]) -> None:
        self.entries: dict[Key, Entry] = {}
        self.within: Treatment | None = None
        """Treatment of the CUDA call that this thread is in."""
        self.composing: set[str] = set()
        """Operators whose parts this thread is running."""
        buffers.append(self.entries)


class Recorder:
    """Collects from all threads; `UsageCounter` with time and places.

    Args:
        sites: Finds the place of a call.
    """

    enabled = True

    def __init__(self, sites: SiteFinder) -> None:
        self.running = True
        self.sites = sites
        self.device_strings: Callable[[], int] | None = None
        """Returns how many device strings were redirected, where that can be told."""
        self._buffers: list[dict[Key, Entry]] = []
        self.thread = _ThreadState(self._buffers)
        self._treatments = {row.name: row.treatment for row in api_table.load()}
        os.register_at_fork(after_in_child=_Stop(self))

    def stop(self) -> None:
        """Ends the recording; what was collected stays."""
        self.running = False

    def record(self, kind: str, name: str, seconds: float, *, raised: bool) -> None:
        """Adds one call of the code that called our caller."""
        entries = self.thread.entries
        entry = entries.get((kind, name))
        if entry is None:
            entry = entries[kind, name] = Entry()
        entry.add(seconds, self.sites.find(sys._getframe(1)), raised=raised)

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns `function`, wrapped to be recorded under `name`.

        A call that PyTorch makes within another recorded call belongs to that one, unless it is
        refused or does nothing, which must not stay unseen.
        """
        from torch.compiler import is_dynamo_compiling

        treatment = self._treatments.get(name, Treatment.REDIRECT)
        thread, clock = self.thread, time.perf_counter

        def recorded(*args: Any, **kwargs: Any) -> Any:
            if is_dynamo_compiling() or not self.running:
                return function(*args, **kwargs)
            outer = thread.within
            if outer is not None and (outer is treatment or treatment not in _SPEAKING):
                return function(*args, **kwargs)
            thread.within = treatment
            raised = True
            start = clock()
            try:
                result = function(*args, **kwargs)
                raised = False
                return result
            finally:
                seconds = clock() - start
                thread.within = outer
                self.record(CALL, name, seconds, raised=raised)

        return recorded

    def merged(self) -> dict[Key, Entry]:
        """Returns what all threads have collected."""
        total: dict[Key, Entry] = {}
        for entries in list(self._buffers):
            for key, entry in list(entries.items()):
                total.setdefault(key, Entry()).merge(entry)
        return total

    def treatment(self, name: str) -> Treatment:
        """Returns what happens to a CUDA name."""
        return self._treatments.get(name, Treatment.REDIRECT)

    def counts(self) -> dict[str, int]:
        """Returns calls by CUDA name, most frequent first."""
        return dict(Counter(dict(self._calls())).most_common())

    def _calls(self) -> Iterator[tuple[str, int]]:
        return (
            (name, entry.calls) for (kind, name), entry in self.merged().items() if kind == CALL
        )


class _Stop:
    """Ends a recording in a forked child; holds no reference to it."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = weakref.ref(recorder)

    def __call__(self) -> None:
        recorder = self._recorder()
        if recorder is not None:
            recorder.stop()
