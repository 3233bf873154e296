"""The examining side: goes through the checklist with one plugin and collects what was seen."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from cuda_morph.errors import UnknownBackendError
from cuda_morph.hookspecs import ENTRY_POINT_GROUP
from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.processes import Event, run_worker
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.result import Identity, Report, Result, describe_environment
from cuda_morph_conformance.vocabulary import Seen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cuda_morph_conformance.registry import Check

LIMIT = 60.0
"""Seconds that one check may take; a check that takes longer has failed."""

Key = tuple[str, str | None]
"""A check's id, and the view it is made in."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Checks that share one process."""

    view: str | None
    ids: tuple[str, ...]


def installed_plugins() -> tuple[str, ...]:
    """Returns the names of all plugins installed here, sorted."""
    return tuple(sorted({entry.name for entry in entry_points(group=ENTRY_POINT_GROUP)}))


def run_plugin(
    name: str,
    *,
    keys: Sequence[Key] | None = None,
    limit: float = LIMIT,
    jobs: int | None = None,
    on_result: Callable[[Result], None] = lambda _: None,
) -> Report:
    """Go through the checklist with one plugin, in processes of its own.

    Args:
        name: Entry-point name of the plugin.
        keys: What to run; by default everything.
        limit: Seconds that one check may take.
        jobs: Processes at a time; by default one per core.
        on_result: Called with each result as it comes.

    Returns:
        The report, with one result per check and view.

    Raises:
        UnknownBackendError: No installed plugin has the name.
    """
    load_all()
    entry = find_entry(name)
    keys = all_keys() if keys is None else keys
    return Report(
        identity=_identify(name, entry),
        results=run_checks(name, keys, limit=limit, jobs=jobs, on_result=on_result),
        environment=describe_environment(),
    )


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


def run_checks(
    name: str,
    keys: Iterable[Key | str],
    *,
    limit: float = LIMIT,
    jobs: int | None = None,
    on_result: Callable[[Result], None] = lambda _: None,
) -> tuple[Result, ...]:
    """Run some checks of the checklist.

    Args:
        name: Entry-point name of the plugin.
        keys: Ids of registered checks with their view; an id alone stands for all its views.
        limit: Seconds that one check may take.
        jobs: Processes at a time; by default one per core.
        on_result: Called with each result as it comes, from several threads.

    Returns:
        One result per key, in their order, whatever the plugin did to its processes.
    """
    wanted = [
        key for item in keys for key in (keys_of(CHECKS[item]) if isinstance(item, str) else [item])
    ]
    results: dict[Key, Result] = {}

    def keep(result: Result) -> None:
        results[result.key] = result
        on_result(result)

    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        for done in [pool.submit(_run_batch, name, one, limit, keep) for one in batches(wanted)]:
            done.result()
    return tuple(results[key] for key in wanted)


def batches(keys: Iterable[Key]) -> list[Batch]:
    """Group checks by the process they can share: the long ones come first.

    Args:
        keys: Ids of registered checks with their view.

    Returns:
        Those that are active together per view, ordinary ones together, each fresh one alone.
    """
    groups: dict[tuple[str | None, object], list[str]] = {}
    for check_id, view in keys:
        check = CHECKS[check_id]
        groups.setdefault((view, check_id if check.fresh else check.active), []).append(check_id)
    made = [Batch(view, tuple(ids)) for (view, _), ids in groups.items()]
    return sorted(made, key=lambda batch: -len(batch.ids))


def _run_batch(name: str, batch: Batch, limit: float, keep: Callable[[Result], None]) -> None:
    """Run checks one after the other; after a crash, go on behind the check that crashed."""
    pending = batch.ids
    while pending:
        done: set[str] = set()

        def step(event: Event, done: set[str] = done) -> None:
            if event["event"] == "done":
                done.add(event["id"])
                keep(_result(event, batch.view))

        ended = run_worker(name, batch.view, pending, limit=limit, on_event=step)
        started = [event["id"] for event in ended.events if event["event"] == "start"]
        if not started:
            reasons = [event["message"] for event in ended.events if event["event"] == "unready"]
            reason = reasons[0] if reasons else f"did not reach the check: {ended.ending}"
            for check_id in pending:
                keep(Result(id=check_id, view=batch.view, seen=Seen.ABSENT, message=reason))
            return
        if started[-1] not in done:
            seen = Result(id=started[-1], view=batch.view, seen=Seen.FAILED, message=ended.ending)
            keep(seen)
        pending = pending[pending.index(started[-1]) + 1 :]


def _result(event: Event, view: str | None) -> Result:
    return Result(
        id=event["id"],
        view=view,
        seen=Seen(event["seen"]),
        message=event["message"],
        seconds=float(event["seconds"]),
    )


def _identify(name: str, entry: EntryPoint) -> Identity:
    if entry.dist is None:
        return Identity(plugin=name)
    return Identity(plugin=name, dist=entry.dist.name, version=entry.dist.version)
