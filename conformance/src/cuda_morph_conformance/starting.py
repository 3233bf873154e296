"""Programs that checks start: each in a folder and a process group of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph_conformance.registry import CheckFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TAIL = 600


def run_program(
    source: str | Path,
    *,
    launcher: Sequence[str],
    arguments: Sequence[str],
    environment: Mapping[str, str],
    timeout: float,
    ranks: int,
) -> subprocess.CompletedProcess[str]:
    """Run a Python program to its end.

    Args:
        source: The program's text, or the path of its file.
        launcher: What stands between the interpreter and the program.
        arguments: The program's arguments.
        environment: Its whole environment.
        timeout: Seconds after which it and its children are killed.
        ranks: With torchrun, that many ranks; 0 starts the program itself.

    Returns:
        The ended process, with its output as text.

    Raises:
        CheckFailed: It did not end in time.
    """
    with tempfile.TemporaryDirectory(prefix="cuda-morph-program-") as folder:
        path = source
        if isinstance(source, str):
            path = Path(folder, "program.py")
            path.write_text(source, encoding="utf-8")
        torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        command = [*launcher, *(torchrun if ranks else ()), str(path), *arguments]
        with subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        ) as process:
            out, err = _await(process, timeout)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _await(process: subprocess.Popen[str], timeout: float) -> tuple[str, str]:
    try:
        return process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        tail = (out + err).strip()[-_TAIL:]
        raise CheckFailed(f"the program did not end within {timeout:g} s: {tail}") from None
