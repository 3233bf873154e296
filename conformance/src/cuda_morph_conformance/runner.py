"""The examining side: goes through the checklist with one plugin and collects what was seen."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from cuda_morph.errors import UnknownBackendError
from cuda_morph.hookspecs import ENTRY_POINT_GROUP
from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.facts import Facts, describe_environment
from cuda_morph_conformance.processes import Event, run_worker
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.result import Report, Result
from cuda_morph_conformance.vocabulary import Seen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cuda_morph_conformance.registry import Check
    from cuda_morph_conformance.waivers import Waiver

LIMIT = 120.0
"""Seconds that one check may take; a check that takes longer has failed."""

MEASURING = frozenset({"OVH"})
"""Areas whose checks measure time: they run when nothing else does."""

Key = tuple[str, str | None]
"""A check's id, and the view it is made in."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Checks that share one process."""

    view: str | None
    ids: tuple[str, ...]
    quiet: bool = False
    """True: they measure time, and nothing else may run meanwhile."""


class Quiet:
    """Where the runs of several plugins wait for one another before time is measured.

    Args:
        runs: How many runs there are.
    """

    def __init__(self, runs: int = 1) -> None:
        self._all_here = threading.Barrier(runs)
        self._one = threading.Lock()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until every run has done all that needs no quiet, then be the only one."""
        # A run that failed takes no part any more; the others go on without waiting for it.
        with contextlib.suppress(threading.BrokenBarrierError):
            self._all_here.wait()
        with self._one:
            yield

    def leave(self) -> None:
        """Let nobody wait for a run that failed."""
        self._all_here.abort()


@dataclass(slots=True, kw_only=True)
class Run:
    """How checks are run, and what was found so far; one for each plugin."""

    plugin: str
    limit: float = LIMIT
    on_result: Callable[[Result], None] = lambda _: None
    """Called with each result as it comes, from several threads."""
    quiet: Quiet = field(default_factory=Quiet)
    stop: threading.Event = field(default_factory=threading.Event)
    """Set to end it early: what has not run is then absent."""
    results: dict[Key, Result] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)
    """Fields of `Facts`."""

    def keep(self, result: Result) -> None:
        """Take a result.

        Args:
            result: What was seen.
        """
        self.results[result.key] = result
        self.on_result(result)


def installed_plugins() -> tuple[str, ...]:
    """Returns the names of all plugins installed here, sorted."""
    return tuple(sorted({entry.name for entry in entry_points(group=ENTRY_POINT_GROUP)}))


def find_entry(name: str) -> EntryPoint:
    """Find an installed plugin without loading it.

    Args:
        name: Entry-point name of the plugin.

    Returns:
        Its entry point.

    Raises:
        UnknownBackendError: No installed plugin has the name.
    """
    entries = entry_points(group=ENTRY_POINT_GROUP, name=name)
    if not entries:
        known = ", ".join(installed_plugins()) or "none"
        raise UnknownBackendError(
            f"No plugin is called {name!r}.", hint=f"Installed plugins: {known}."
        )
    return next(iter(entries))


def all_keys() -> tuple[Key, ...]:
    """Returns every check of the checklist with every view it is made in."""
    return tuple(key for check in CHECKS.values() for key in keys_of(check))


def keys_of(check: Check) -> tuple[Key, ...]:
    """Returns the results that one check has.

    Args:
        check: A check of the checklist.
    """
    return tuple((check.id, view) for view in check.views or (None,))


def run_plugin(
    name: str,
    *,
    keys: Sequence[Key] | None = None,
    waivers: Iterable[Waiver] = (),
    pool: Executor | None = None,
    **options: Any,
) -> Report:
    """Go through the checklist with one plugin, in processes of its own.

    Args:
        name: Entry-point name of the plugin.
        keys: What to run; by default everything.
        waivers: Failures to let pass.
        pool: Where processes are waited for; it says how many there are at a time. By default
            one per core.
        **options: Fields of `Run`.

    Returns:
        The report, with one result per check and view.

    Raises:
        UnknownBackendError: No installed plugin has the name.
    """
    load_all()
    entry = find_entry(name)
    run = Run(plugin=name, **options)
    due = all_keys() if keys is None else tuple(keys)
    start = time.perf_counter()
    with ThreadPoolExecutor(os.cpu_count() or 1) as own:
        chosen = pool or own
        probe = chosen.submit(_probe, run)
        _run_all(run, due, chosen)
        probe.result()
    return Report(
        facts=_facts(run, entry),
        results=tuple(run.results[key] for key in due),
        complete=keys is None,
        waivers=tuple(waivers),
        environment=describe_environment(),
        seconds=round(time.perf_counter() - start, 2),
    )


def run_checks(name: str, keys: Iterable[Key | str], **options: Any) -> tuple[Result, ...]:
    """Run some checks of the checklist.

    Args:
        name: Entry-point name of the plugin.
        keys: Ids of registered checks with their view; an id alone stands for all its views.
        **options: Fields of `Run`.

    Returns:
        One result per key, in their order, whatever the plugin did to its processes.
    """
    due = [
        key for item in keys for key in (keys_of(CHECKS[item]) if isinstance(item, str) else [item])
    ]
    run = Run(plugin=name, **options)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        _run_all(run, due, pool)
    return tuple(run.results[key] for key in due)


def batches(keys: Iterable[Key]) -> list[Batch]:
    """Group checks by the process they can share: the long ones come first.

    Args:
        keys: Ids of registered checks with their view.

    Returns:
        Those that are active together per view, ordinary ones together, each fresh one alone.
    """
    groups: dict[tuple[str | None, bool, object], list[str]] = {}
    for check_id, view in keys:
        check = CHECKS[check_id]
        group = (view, check.area in MEASURING, check_id if check.fresh else check.active)
        groups.setdefault(group, []).append(check_id)
    made = [Batch(view, tuple(ids), quiet) for (view, quiet, _), ids in groups.items()]
    return sorted(made, key=lambda batch: -len(batch.ids))


def _run_all(run: Run, keys: Sequence[Key], pool: Executor) -> None:
    planned = batches(keys)
    try:
        loud = [pool.submit(_run_batch, run, batch) for batch in planned if not batch.quiet]
        for done in loud:
            done.result()
    except BaseException:
        run.quiet.leave()
        raise
    with run.quiet.alone():
        for batch in planned:
            if batch.quiet:
                _run_batch(run, batch)


def _probe(run: Run) -> None:
    """Asks the plugin who it is, in a process of its own."""

    def step(event: Event) -> None:
        if event["event"] == "subject":
            run.found.update(event["facts"])
        elif event["event"] == "unready":
            run.found["problem"] = event["message"]

    ended = run_worker(run.plugin, None, (), limit=run.limit, on_event=step, stop=run.stop)
    if not {event["event"] for event in ended.events} & {"subject", "unready"}:
        run.found["problem"] = ended.ending


def _run_batch(run: Run, batch: Batch) -> None:
    """Run checks one after the other; after a crash, go on behind the check that crashed."""
    pending = batch.ids
    while pending and not run.stop.is_set():

        def step(event: Event) -> None:
            if event["event"] == "done":
                run.keep(_result(event, batch.view))
            elif event["event"] == "active":
                run.found.update(event["facts"], devices=tuple(event["facts"]["devices"]))

        ended = run_worker(
            run.plugin, batch.view, pending, limit=run.limit, on_event=step, stop=run.stop
        )
        started = [event["id"] for event in ended.events if event["event"] == "start"]
        if not started:
            reasons = [event["message"] for event in ended.events if event["event"] == "unready"]
            reason = reasons[0] if reasons else f"did not reach the check: {ended.ending}"
            _miss(run, batch.view, pending, reason)
            return
        if (started[-1], batch.view) not in run.results and not run.stop.is_set():
            crashed = Result(
                id=started[-1], view=batch.view, seen=Seen.FAILED, message=ended.ending
            )
            run.keep(crashed)
        pending = pending[pending.index(started[-1]) + 1 :]
    _miss(run, batch.view, batch.ids, "the run was stopped before")


def _miss(run: Run, view: str | None, ids: Iterable[str], reason: str) -> None:
    for check_id in ids:
        if (check_id, view) not in run.results:
            run.keep(Result(id=check_id, view=view, seen=Seen.ABSENT, message=reason))


def _result(event: Event, view: str | None) -> Result:
    return Result(
        id=event["id"],
        view=view,
        seen=Seen(event["seen"]),
        message=event["message"],
        seconds=float(event["seconds"]),
    )


def _facts(run: Run, entry: EntryPoint) -> Facts:
    dist, version = (entry.dist.name, entry.dist.version) if entry.dist else (None, None)
    return Facts(plugin=run.plugin, dist=dist, version=version, **run.found)
