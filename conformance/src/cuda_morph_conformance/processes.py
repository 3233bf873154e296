"""The examining side's processes: start a worker, follow its journal, say how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.worker import HUNG, Order

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence
    from typing import TextIO

GRACE = 15.0
"""Seconds beyond the limit after which a worker that does not stop itself is killed."""

_PAUSE = 0.05
_UNWANTED = ("CUDA_MORPH_", "PYTEST_", "TORCH_DEVICE_BACKEND_AUTOLOAD")
_KEPT = ("CUDA_MORPH_SIM_",)
_PYTHON_KEPT = frozenset({"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"})

_START = """
import sys
early = [name for name in sys.modules if name.partition(".")[0] == "cuda_morph_conformance"]
if early:
    sys.exit(f"the suite was imported before it was started, by a .pth file: {early}")
if sys.path[0] == "":
    del sys.path[0]
from importlib import import_module
module, arguments = sys.argv[1], sys.argv[2:]
sys.argv[1:] = arguments
import_module(module).main(*arguments)
"""

Event = dict[str, Any]


@dataclass(slots=True)
class Ended:
    """A worker that is over."""

    events: list[Event] = field(default_factory=list)
    ending: str = ""
    """How it ended, in words."""


def clean_environment() -> dict[str, str]:
    """Returns the environment without what could change a result: settings of the user.

    Settings of the simulated device stay: how many devices it has and how much memory is part of
    the machine. So does the import path.
    """
    kept = {
        key: value
        for key, value in os.environ.items()
        if key.startswith(_KEPT) or not (key.startswith(_UNWANTED) or _is_python_setting(key))
    }
    # Vendor code imports the adapter by its name; a simulation answers to it when told so.
    return {**kept, "CUDA_MORPH_SIM_IMPORTS": "1", "PYTHONHASHSEED": "0"}


def isolated_environment(folder: Path) -> dict[str, str]:
    """Make an environment in which Python runs no start-up module of the vendor or the user.

    Args:
        folder: An empty folder that outlives the process.

    Returns:
        The clean environment, with empty start-up modules before all others on the import path.
    """
    shadow = folder / "startup"
    shadow.mkdir()
    for name in ("sitecustomize", "usercustomize"):
        shadow.joinpath(f"{name}.py").touch()
    environment = clean_environment()
    paths = [str(shadow), *filter(None, [environment.get("PYTHONPATH")])]
    return {**environment, "PYTHONPATH": os.pathsep.join(paths)}


def isolated_command(module: str, *arguments: str) -> list[str]:
    """Make a command that starts a module of the suite, and nothing that got hold of it before.

    Args:
        module: A module with a function ``main``.
        *arguments: What it is called with.

    Returns:
        The command.
    """
    return [sys.executable, "-c", _START, module, *arguments]


def run_worker(
    plugin: str,
    view: str | None,
    ids: Sequence[str],
    *,
    limit: float,
    on_event: Callable[[Event], None],
    stop: threading.Event,
) -> Ended:
    """Run checks in one new process until it ends, for whatever reason.

    Args:
        plugin: Entry-point name of the plugin.
        view: The view to activate, ``None`` for checks that depend on none.
        ids: The checks, in their order.
        limit: Seconds that one check may take.
        on_event: Called with each step as soon as it is written.
        stop: When set, the process is ended.

    Returns:
        All steps, and how the process ended.
    """
    with tempfile.TemporaryDirectory(prefix="cuda-morph-conformance-") as folder:
        journal = Path(folder, "journal.jsonl")
        journal.touch()
        output = Path(folder, "output.txt")
        order = Order(plugin=plugin, view=view, ids=tuple(ids), limit=limit, journal=str(journal))
        work = Path(folder, "work")
        work.mkdir()
        with output.open("wb") as stream, journal.open(encoding="utf-8") as reader:
            process = subprocess.Popen(
                isolated_command("cuda_morph_conformance.worker", order.encode()),
                cwd=work,
                env=isolated_environment(Path(folder)),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                events = _follow(process, reader, limit, on_event, stop)
            finally:
                _end_group(process)
        written = output.read_text(encoding="utf-8", errors="replace")
        return Ended(events=events, ending=_describe_end(process.returncode, written))


def _follow(
    process: subprocess.Popen[bytes],
    reader: TextIO,
    limit: float,
    on_event: Callable[[Event], None],
    stop: threading.Event,
) -> list[Event]:
    """Reads the journal while it is written; kills a worker that its own watchdog cannot stop."""
    events: list[Event] = []
    rest = ""
    last = time.monotonic()
    while True:
        running = process.poll() is None
        rest += reader.read()
        *lines, rest = rest.split("\n")
        for line in lines:
            events.append(json.loads(line))
            on_event(events[-1])
            last = time.monotonic()
        if not running:
            return events
        if stop.is_set() or time.monotonic() - last > limit + GRACE:
            process.kill()
            process.wait()
            continue
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_PAUSE)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends the worker and whatever it left running."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _is_python_setting(key: str) -> bool:
    return key.startswith("PYTHON") and key not in _PYTHON_KEPT


def _describe_end(code: int, written: str) -> str:
    if HUNG in written:
        return "did not end within the time allowed"
    last = written.strip().splitlines()[-1:] or ["no output"]
    if code < 0:
        return f"the process died of {signal.Signals(-code).name}; last line: {last[0]}"
    return f"the process ended with exit code {code}; last line: {last[0]}"
