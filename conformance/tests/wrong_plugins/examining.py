"""Runs checks on a faulty plugin, in copies of a process that has PyTorch imported.

The checks, their order and what counts as failed are those of the runner; only the start of a
process is cheaper. Checks that need a process in which nothing was done, and those of loading,
start as they do for a certificate.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from fault import FAULTS
from faulty_plugin import NAME
from installing import install

from cuda_morph_conformance import processes, rank_pool, runner, worker
from cuda_morph_conformance.processes import Ended
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.vocabulary import VIEWS, Outcome

CONTROL = "control"
"""Stands for the plugin without a fault."""

_DEVICES = "2"
_BAD = (Outcome.FAILED, Outcome.MISSING)
_start_process = processes.run_worker


class Inline(Executor):
    """Does each piece of work at once: a process that has threads cannot be copied."""

    def submit(self, work: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        """Return the result, as a future that is done."""
        done: Future[Any] = Future()
        done.set_result(work(*arguments, **options))
        return done


def prepare() -> None:
    """Import what the copies need, and let the runner make copies."""
    os.environ.update(CUDA_MORPH_SIM_DEVICES=_DEVICES, OMP_NUM_THREADS="1")
    import torch._dynamo  # noqa: F401

    runner.run_worker = _start_copy


def examine(
    fault: str, checks: Iterable[str] = (), views: Iterable[str | None] = (None, *VIEWS)
) -> dict[str, Any]:
    """Run the checklist on the plugin with a fault.

    Args:
        fault: Name of the fault, or `CONTROL`.
        checks: Only these ids.
        views: Only in these views; ``None`` for checks that depend on none.

    Returns:
        Whether it was the whole checklist, how many results it had, the seconds it took, and id,
        view, outcome and message of what failed or is missing.
    """
    wanted = set(checks)
    keys = [key for key in runner.all_keys() if key[0] in wanted and key[1] in views]
    before = os.environ.get("PYTHONPATH", "")
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        paths = install(Path(folder), "" if fault == CONTROL else fault)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [paths, before]))
        sys.path.insert(0, folder)
        try:
            report = runner.run_plugin(NAME, keys=keys if wanted else None, pool=Inline())
        finally:
            os.environ["PYTHONPATH"] = before
            sys.path.remove(folder)
    found = [(one.result, one.outcome) for one in report.verdicts if one.outcome in _BAD]
    return {
        "complete": report.complete,
        "results": len(report.results),
        "seconds": round(time.monotonic() - start, 1),
        "failed": [[one.id, one.view, outcome.value, one.message] for one, outcome in found],
    }


def failed_checks(found: dict[str, Any], control: dict[str, Any]) -> set[str]:
    """Return the ids of what failed or is missing, less what the control has as well."""
    usual = {tuple(row[:2]) for row in control["failed"]}
    return {row[0] for row in found["failed"] if tuple(row[:2]) not in usual}


def is_caught(fault: str, failed: set[str]) -> bool:
    """Tell whether exactly the intended checks failed."""
    return failed == (set() if fault == CONTROL else set(FAULTS[fault].caught_by))


def neighbours(fault: str, count: int) -> set[str]:
    """Return the checks that must fail, and some of the same area that must not."""
    intended = FAULTS[fault].caught_by
    area = [one.id for one in CHECKS.values() if one.area == CHECKS[intended[0]].area]
    place = area.index(intended[0])
    others = [one for one in area if one not in intended and not CHECKS[one].fresh]
    return {*intended, *sorted(others, key=lambda one: abs(area.index(one) - place))[:count]}


def _start_copy(
    plugin: str, view: str | None, ids: Iterable[str], *, limit: float, on_event: Any, stop: Any
) -> Ended:
    ids = tuple(ids)
    if not ids or not all(CHECKS[one].active for one in ids):
        return _start_process(plugin, view, ids, limit=limit, on_event=on_event, stop=stop)
    with tempfile.TemporaryDirectory(prefix="wrong-plugin-") as folder:
        journal, output = Path(folder, "journal.jsonl"), Path(folder, "output.txt")
        journal.touch()
        order = worker.Order(plugin=plugin, view=view, ids=ids, limit=limit, journal=str(journal))
        status = _in_a_copy(lambda: worker.main(order.encode()), Path(folder))
        said = output.read_text(errors="replace")[-300:]
        ended = Ended(ending=f"the process ended with status {status}: {said}")
        for line in journal.read_text().splitlines():
            ended.events.append(json.loads(line))
            on_event(ended.events[-1])
        return ended


def _in_a_copy(work: Callable[[], object], folder: Path) -> int:
    sys.stdout.flush()
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        environment = processes.clean_environment()
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        # Nothing that is registered for the end of a process runs in a copy.
        for pool in list(rank_pool._pools.values()):
            pool.close()
        os._exit(code)
