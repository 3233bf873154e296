"""A child process for foreign code: it may hang, abort, or print what it likes.

It answers in lines of JSON, each complete before the next thing is begun, so that nothing it said
is lost when it dies. `WorkerProcess` is the parent's side of it, `Answers` the child's.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from importlib import import_module; import_module(sys.argv[2]).main(*sys.argv[3:])"
)
_GRACE = 5.0
_LOOK = 1.0
"""Seconds after which it is looked whether the process still lives."""
_LAST = 4096
"""Bytes at the end of what was printed that are looked at."""


class WorkerProcess:
    """One process and the reading of its answers.

    Args:
        module: Its ``main`` is called with the arguments.
        arguments: Texts.
        without: Environment variables that it does not get.
    """

    def __init__(self, module: str, arguments: Sequence[str], without: Sequence[str] = ()) -> None:
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `stop`
        self._late: float | None = None
        self.last_words = ""
        """The last line that the process printed; known when it has been stopped."""
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps(sys.path), module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._printed,
            env={name: text for name, text in os.environ.items() if name not in without},
            start_new_session=True,
        )
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        if self._process.stdout is not None:
            for line in self._process.stdout:
                self._lines.put(line)
            self._process.stdout.close()
        self._lines.put(None)

    @property
    def late(self) -> bool:
        """Whether an answer was waited for in vain."""
        return self._late is not None

    def answer(self, seconds: float) -> dict[str, Any] | None:
        """Returns the next answer; ``None`` when there is none in time, or none any more."""
        end = time.monotonic() + max(0.0, seconds)
        while True:
            ended = self._process.poll() is not None
            left = min(_LOOK, max(0.0, end - time.monotonic()))
            try:
                line = self._lines.get(timeout=_LOOK if ended else left)
            except queue.Empty:
                if ended:  # what it started holds its end of the pipe
                    return None
                if left < _LOOK:
                    self._late = seconds
                    return None
                continue
            if line is None:
                return None
            with contextlib.suppress(ValueError):  # cut off in the middle
                said: dict[str, Any] = json.loads(line)
                return said

    def stop(self, *, at_once: bool = False) -> str:
        """Ends the process and all it started.

        Args:
            at_once: Do not wait for it to end by itself, as after its last answer.

        Returns:
            How it ended; nothing for a good end.
        """
        if self._late is None and not at_once:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=_GRACE)
        code = self._process.poll()
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a driver may hold on to it
            self._process.wait(timeout=_GRACE)
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._reader.join(_GRACE)
        self.last_words = self._last_line()
        self._printed.close()
        return self._end(code)

    def _end(self, code: int | None) -> str:
        if self._late is not None:
            return f"gave no answer within {self._late:g} s"
        if code is not None and code < 0:
            return f"its process was ended by signal {-code}{_name(-code)}"
        return f"its process ended with exit status {code}" if code else ""

    def _last_line(self) -> str:
        self._printed.seek(0, os.SEEK_END)
        self._printed.seek(max(0, self._printed.tell() - _LAST))
        lines = self._printed.read().decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")[:300]


def _name(number: int) -> str:
    with contextlib.suppress(ValueError):
        return f" ({signal.Signals(number).name})"
    return ""


class Answers:
    """The child's way to answer. Its standard streams belong to foreign code from then on."""

    def __init__(self) -> None:
        self._stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        parent, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()

    def tell(self, answer: dict[str, Any]) -> None:
        """Writes one answer; it has arrived when this returns."""
        self._stream.write(json.dumps(answer) + "\n")
        self._stream.flush()

    def forget_printed(self) -> None:
        """Drops what was printed so far: `WorkerProcess.last_words` are about what comes now."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        with contextlib.suppress(OSError):
            os.ftruncate(2, 0)
            os.lseek(2, 0, os.SEEK_SET)


def _leave_with(parent: int) -> None:
    """Ends this process when its parent is gone, however that came about."""
    with contextlib.suppress(OSError):
        while os.read(parent, 1):
            pass
    os._exit(1)
