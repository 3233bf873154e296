"""Running foreign code in a child process: it may hang, abort, or print what it likes."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

from cuda_morph import environment
from cuda_morph.frozen_record import frozen_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from cuda_morph.diagnosis import worker; worker.main(*sys.argv[2:])"
)
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
        child = _Child(kind, requests)
        try:
            for line in child.lines(seconds):
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


class _Child:
    """One process and the reading of its answers."""

    def __init__(self, kind: str, requests: list[tuple[str, int]]) -> None:
        inherited = (environment.AUTO_ACTIVATE.name, environment.INHERIT.name)
        self._late = False
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps(sys.path), kind, json.dumps(requests)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: text for name, text in os.environ.items() if name not in inherited},
            start_new_session=True,
        )
        self._queue: queue.Queue[bytes | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        if self._process.stdout is not None:
            for line in self._process.stdout:
                self._queue.put(line)
        self._queue.put(None)

    def lines(self, seconds: float) -> Iterator[dict[str, Any]]:
        """Yields answers until the process ends or one is late."""
        while True:
            try:
                line = self._queue.get(timeout=seconds)
            except queue.Empty:
                self._late = True
                self._seconds = seconds
                return
            if line is None:
                return
            with contextlib.suppress(ValueError):  # cut off in the middle
                yield json.loads(line)

    def stop(self) -> str:
        """Ends the process and all it started; says how it ended, nothing for a good end."""
        if not self._late:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5)
        code = self._process.poll()
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self._process.wait()
        if self._late:
            return f"gave no answer within {self._seconds:g} s"
        if code is not None and code < 0:
            return f"its process was ended by signal {-code}"
        return f"its process ended with exit status {code}" if code else ""
