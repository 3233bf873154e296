"""Fresh interpreters: start-up is measured in processes of their own, with bytecode cached."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_BYTECODE = Path(tempfile.gettempdir()) / "cuda-morph-bench-bytecode"


def environment(**changes: str) -> dict[str, str]:
    """Returns the variables of a measured process.

    Bytecode goes to a folder of its own: an installed package has it cached, a checkout on a
    machine that forbids ``__pycache__`` would compile every module again at each start.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("CUDA_MORPH_") and name != "PYTHONDONTWRITEBYTECODE"
    }
    return {**kept, "PYTHONPYCACHEPREFIX": str(_BYTECODE), "OMP_NUM_THREADS": "1", **changes}


def run(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Runs this interpreter and returns what it wrote."""
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment(**changes),
        capture_output=True,
        text=True,
        check=False,
    )


def timed(*arguments: str) -> tuple[float, float]:
    """Runs this interpreter; returns its CPU time and its wall time in milliseconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run(*arguments)
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1e3 * cpu, 1e3 * (end - start)


def ask(script: str, *arguments: str, **changes: str) -> Any:
    """Runs a script of this folder and returns the JSON of its last line.

    Raises:
        RuntimeError: It failed.
    """
    done = run(str(HERE / script), *arguments, **changes)
    if done.returncode != 0:
        raise RuntimeError(f"{script} {' '.join(arguments)} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])
