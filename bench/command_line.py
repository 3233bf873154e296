"""Family ``command-line``: how long a user waits for help and information."""

from __future__ import annotations

from typing import TYPE_CHECKING

import fresh
from activation import count, duration

if TYPE_CHECKING:
    from rows import Effort, Row

LIMIT_MS = 150.0
COMMANDS = (("--help",), ("info",))


def measure(effort: Effort) -> list[Row]:
    """Times whole processes and looks for torch among their imports."""
    rows = []
    for command in COMMANDS:
        arguments = ("-m", "cuda_morph", *command)
        trial = fresh.run(*arguments, PYTHONPROFILEIMPORTTIME="1")
        if trial.returncode != 0:
            raise RuntimeError(f"cuda-morph {' '.join(command)} failed:\n{trial.stderr[-2000:]}")
        imported = {line.rpartition("|")[2].strip() for line in trial.stderr.splitlines()}
        times = [fresh.timed(*arguments) for _ in range(effort.processes)]
        name = f"cuda-morph {' '.join(command)}"
        rows.append(duration("command-line", name, "fresh process", times, LIMIT_MS))
        rows.append(count("command-line", f"{name}: imports of torch", "", "torch" in imported, 0))
    return rows
