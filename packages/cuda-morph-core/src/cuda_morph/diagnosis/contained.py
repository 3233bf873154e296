"""Running foreign code in a child process: it may hang, abort, or print what it likes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cuda_morph import environment
from cuda_morph.frozen_record import frozen_record
from cuda_morph.worker_process import WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WORKER = "cuda_morph.diagnosis.worker"
_INHERITED = (environment.AUTO_ACTIVATE.name, environment.INHERIT.name)
SECONDS = 60.0
"""For one thing; the first import of PyTorch on a slow disk is one of them."""


@frozen_record
class Outcome:
    """What came of one thing."""

    subject: str
    id: str
    summary: str = ""
    fix: str = ""
    answer: dict[str, Any] | None = None
    """What the code answered, ``None`` when it did not."""
    error: str = ""
    """What it raised, or how its process ended."""


def run(kind: str, subjects: Iterable[str], *, seconds: float = SECONDS) -> Iterator[Outcome]:
    """Runs things one after the other; one that takes its process along ends only itself.

    Args:
        kind: A key of `cuda_morph.diagnosis.worker.KINDS`.
        subjects: Names of plugins or entry points.
        seconds: Time for each thing.

    Yields:
        An outcome each, in order.
    """
    requests: list[tuple[str, int]] = [(subject, 0) for subject in subjects]
    while requests:
        pending: dict[str, Any] | None = None
        child = WorkerProcess(_WORKER, [kind, json.dumps(requests)], _INHERITED)
        try:
            while (line := child.answer(seconds)) is not None:
                if line["event"] == "begin":
                    pending = line
                elif pending is not None:
                    yield _outcome(pending, line)
                    pending = None
        finally:
            end = child.stop()
        if pending is None and not end:
            return
        subject = pending["subject"] if pending else requests[0][0]
        position = [name for name, _ in requests].index(subject)
        requests = requests[position + 1 :]
        if pending is None:
            yield Outcome(subject=subject, id=f"{subject}.{kind}", error=end)
            continue
        yield _outcome(pending, {"error": end or "it ended its process"})
        if kind == "checks" and pending["index"] > 0:
            requests.insert(0, (subject, pending["index"]))


def _outcome(begun: dict[str, Any], ended: dict[str, Any]) -> Outcome:
    answer = {key: value for key, value in ended.items() if key not in ("event", "subject")}
    error = answer.pop("error", "")
    return Outcome(
        subject=begun["subject"],
        id=begun["id"],
        summary=begun.get("summary", ""),
        fix=begun.get("fix", ""),
        answer=None if error else answer,
        error=error,
    )
