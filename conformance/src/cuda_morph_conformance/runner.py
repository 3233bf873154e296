"""The examining side: starts processes for one plugin and collects what they wrote."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph.errors import UnknownBackendError
from cuda_morph.hookspecs import ENTRY_POINT_GROUP
from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.result import Identity, Report, Result, describe_environment
from cuda_morph_conformance.vocabulary import Outcome
from cuda_morph_conformance.worker import HUNG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cuda_morph_conformance.registry import Check

LIMIT = 60.0
"""Seconds that one check may take; a check that takes longer has failed."""


def installed_plugins() -> tuple[str, ...]:
    """Returns the names of all plugins installed here, sorted."""
    return tuple(sorted({entry.name for entry in entry_points(group=ENTRY_POINT_GROUP)}))


def run_plugin(name: str, *, limit: float = LIMIT) -> Report:
    """Go through the checklist with one plugin, in processes of its own.

    Args:
        name: Entry-point name of the plugin.
        limit: Seconds that one check may take.

    Returns:
        The report, with one result per check of the checklist.

    Raises:
        UnknownBackendError: No installed plugin has the name.
    """
    load_all()
    entries = entry_points(group=ENTRY_POINT_GROUP, name=name)
    if not entries:
        known = ", ".join(installed_plugins()) or "none"
        raise UnknownBackendError(
            f"No plugin is called {name!r}.", hint=f"Installed plugins: {known}."
        )
    return Report(
        identity=_identify(name, next(iter(entries))),
        results=run_checks(name, tuple(CHECKS), limit=limit),
        environment=describe_environment(),
    )


def run_checks(name: str, ids: Sequence[str], *, limit: float = LIMIT) -> tuple[Result, ...]:
    """Run some checks of the checklist.

    Args:
        name: Entry-point name of the plugin.
        ids: Ids of checks that are registered.
        limit: Seconds that one check may take.

    Returns:
        One result per id, in their order, whatever the plugin did to its processes.
    """
    results: dict[str, Result] = {}
    for batch in _batches([CHECKS[check_id] for check_id in ids]):
        results |= _run_batch(name, batch, limit)
    return tuple(results[check_id] for check_id in ids)


def _identify(name: str, entry: EntryPoint) -> Identity:
    if entry.dist is None:
        return Identity(plugin=name)
    return Identity(plugin=name, dist=entry.dist.name, version=entry.dist.version)


def _batches(checks: Sequence[Check]) -> list[list[str]]:
    """Returns the ids to run per process: all ordinary ones together, each fresh one alone."""
    together = [check.id for check in checks if not check.fresh]
    alone = [[check.id] for check in checks if check.fresh]
    return [together, *alone] if together else alone


def _run_batch(name: str, ids: list[str], limit: float) -> dict[str, Result]:
    """Run checks one after the other; after a crash, go on behind the check that crashed."""
    results: dict[str, Result] = {}
    pending = ids
    while pending:
        events, ending = _run_process(name, pending, limit)
        results |= {event["id"]: _result(event) for event in events if event["event"] == "done"}
        started = [event["id"] for event in events if event["event"] == "start"]
        if not started:
            reason = f"the process did not reach the check: {ending}"
            return results | {
                check_id: Result(id=check_id, outcome=Outcome.MISSING, message=reason)
                for check_id in pending
            }
        if started[-1] not in results:
            results[started[-1]] = Result(id=started[-1], outcome=Outcome.FAILED, message=ending)
        pending = pending[pending.index(started[-1]) + 1 :]
    return results


def _result(event: dict[str, str]) -> Result:
    return Result(
        id=event["id"],
        outcome=Outcome(event["outcome"]),
        message=event["message"],
        seconds=float(event["seconds"]),
    )


def _run_process(name: str, ids: list[str], limit: float) -> tuple[list[dict[str, str]], str]:
    """Returns what one process wrote into its journal, and how it ended."""
    with tempfile.TemporaryDirectory(prefix="cuda-morph-conformance-") as folder:
        journal = Path(folder, "journal.jsonl")
        output = Path(folder, "output.txt")
        command = [sys.executable, "-m", "cuda_morph_conformance.worker"]
        with output.open("wb") as stream:
            process = subprocess.Popen(
                [*command, name, str(journal), str(limit), *ids],
                cwd=folder,
                env=_clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )
            try:
                # The worker's own watchdog comes first; this bound is for a worker that cannot die.
                process.wait(timeout=(limit + 1) * len(ids) + 30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        written = output.read_text(encoding="utf-8", errors="replace")
        lines = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
        return [json.loads(line) for line in lines], _describe_end(process.returncode, written)


def _clean_environment() -> dict[str, str]:
    """Returns the environment without the user's settings of cuda-morph."""
    return {key: value for key, value in os.environ.items() if not key.startswith("CUDA_MORPH_")}


def _describe_end(code: int, written: str) -> str:
    if HUNG in written:
        return "did not end within the time allowed"
    last = written.strip().splitlines()[-1:] or ["no output"]
    if code < 0:
        return f"the process died of {signal.Signals(-code).name}; last line: {last[0]}"
    return f"the process ended with exit code {code}; last line: {last[0]}"
