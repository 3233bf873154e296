"""Two rank processes for the checks of collectives, started once and used by all of them.

Starting a rank costs seconds: it imports torch, activates the plugin and joins a group. So ranks
stay for as long as the worker, and a check sends them the function to run. A rank that crashes or
hangs is the outcome of that check; the next check gets new ranks.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from cuda_morph_conformance.processes import isolated_command
from cuda_morph_conformance.registry import CheckFailed, NotRun, check
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cuda_morph_conformance.rank import World
    from cuda_morph_conformance.subject import Subject

    RankFunction = Callable[[World], None]

SIZE = 2
LIMIT = 40.0
"""Seconds that one check may take in its ranks; less than the worker allows."""

AFTERMATH = 3.0
"""Seconds that the others get once one rank has failed: most likely they wait for it."""

_STARTING = 50.0


def on_ranks(
    id: str,  # noqa: A002 - the word that the checklist uses
    *,
    requires: tuple[str, ...],
    bare: bool = False,
    views: tuple[str, ...] | None = None,
) -> Callable[[RankFunction], RankFunction]:
    """Register a function that runs on every rank as a check of the level ``scales``.

    The function takes a `cuda_morph_conformance.rank.World`; the plugin is active, the rank's
    device is current, and the default group is there. It raises like any other check.

    Args:
        id: As for `check`.
        requires: As for `check`.
        bare: True: there is no default group; the function makes its own.
        views: As for `check`.

    Returns:
        The decorator, which gives the function back unchanged.
    """

    def register(function: RankFunction) -> RankFunction:
        @functools.wraps(function)
        def run(subject: Subject) -> None:
            ranks_of(subject).run(function, bare=bare)

        check(id, level=Level.SCALES, requires=requires, since="1.0", devices=SIZE, views=views)(
            run
        )
        return function

    return register


_pools: dict[tuple[str, str], RankPool] = {}


def ranks_of(subject: Subject) -> RankPool:
    """Returns the ranks of a subject, which start with the first check."""
    key = (subject.backend_name, subject.view)
    if key not in _pools:
        _pools[key] = RankPool(subject)
        atexit.register(_pools[key].close)
    return _pools[key]


class RankPool:
    """The ranks of one subject.

    Args:
        subject: The plugin and the view to activate in each rank.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._ranks: list[_Rank] = []
        self._folder = ""
        self._serial = 0
        self._anew = False

    def run(self, function: RankFunction, *, bare: bool = False, limit: float = LIMIT) -> None:
        """Run a function on every rank.

        Args:
            function: A function of a module, found there under its own name.
            bare: Whether there is to be no default group.
            limit: Seconds that it may take.

        Raises:
            CheckFailed: It raised on a rank, or a rank died or did not end in time.
            NotRun: It said so.
        """
        if not self._ranks:
            self._start()
        self._serial += 1
        name = f"{function.__module__}:{function.__qualname__}"
        job = {"function": name, "bare": bare, "serial": self._serial, "anew": self._anew}
        self._anew = True  # unless this one passes: ranks may disagree about the group
        for rank in self._ranks:
            rank.send(job)
        self._judge(self._collect(limit))
        self._anew = False

    def close(self) -> None:
        """End the ranks."""
        for rank in self._ranks:
            rank.kill()
        self._ranks = []
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""

    def _start(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="cuda-morph-ranks-")
        self._ranks = [_Rank(self._subject, number, self._folder) for number in range(SIZE)]
        self._judge(self._collect(_STARTING))

    def _collect(self, limit: float) -> list[dict[str, Any] | None]:
        """Waits for one answer per rank; ``None`` stands for one that did not come."""
        end = time.monotonic() + limit
        answers: list[dict[str, Any] | None] = [None] * SIZE
        with selectors.DefaultSelector() as selector:
            for rank in self._ranks:
                selector.register(rank.channel, selectors.EVENT_READ, rank)
            while selector.get_map() and (left := end - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    rank = key.data
                    answer = rank.receive()
                    if answer is None:
                        continue
                    answers[rank.number] = answer
                    selector.unregister(rank.channel)
                    if answer["seen"] != "passed":
                        end = min(end, time.monotonic() + AFTERMATH)
        return answers

    def _judge(self, answers: Sequence[dict[str, Any] | None]) -> None:
        said = [
            (number, answer["seen"], answer["message"])
            for number, answer in enumerate(answers)
            if answer is not None and answer["seen"] != "passed"
        ]
        silent = [number for number, answer in enumerate(answers) if answer is None]
        broken = bool(silent) or any(seen == "died" for _, seen, _ in said)
        if broken:
            self.close()
        # A sentence that does not hold says more than the error that it caused on another rank.
        for wanted in ("failed", "died", "raised", "skipped"):
            for number, seen, message in said:
                if seen == "skipped" == wanted:
                    raise NotRun(message)
                if seen == wanted:
                    raise CheckFailed(f"rank {number}: {message}")
        if silent:
            raise CheckFailed(f"rank {silent[0]} did not end within the time allowed")


class _Rank:
    """One rank process, seen from the worker."""

    def __init__(self, subject: Subject, number: int, folder: str) -> None:
        self.number = number
        self._output = Path(folder, f"output-{number}.txt")
        self._rest = b""
        self.channel, theirs = os.pipe()
        order = {
            "plugin": subject.name,
            "view": subject.view,
            "rank": number,
            "size": SIZE,
            "folder": folder,
            "channel": theirs,
        }
        with self._output.open("wb") as stream:
            self._process = subprocess.Popen(
                isolated_command("cuda_morph_conformance.rank", json.dumps(order)),
                cwd=folder,
                env=subject.environment,
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs,),
            )
        os.close(theirs)
        self._commands = cast("IO[bytes]", self._process.stdin)

    def send(self, job: dict[str, Any]) -> None:
        """Gives the rank something to do; a rank that is gone says so in its answer."""
        with contextlib.suppress(BrokenPipeError):
            self._commands.write(json.dumps(job).encode() + b"\n")
            self._commands.flush()

    def receive(self) -> dict[str, Any] | None:
        """Returns the answer if it has come whole."""
        part = os.read(self.channel, 1 << 16)
        if not part:
            return {"seen": "died", "message": self._ending()}
        self._rest += part
        if not self._rest.endswith(b"\n"):
            return None
        answer: dict[str, Any] = json.loads(self._rest)
        self._rest = b""
        return answer

    def kill(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        os.close(self.channel)
        with contextlib.suppress(BrokenPipeError):
            self._commands.close()

    def _ending(self) -> str:
        code = self._process.wait()
        written = self._output.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last = written[-1] if written else "no output"
        how = (
            f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        )
        return f"the process {how}; last line: {last}"
