from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = Path(__file__).parents[2]
SOURCES = [PACKAGES / name / "src" for name in ("cuda-morph-core", "cuda-morph-sim")]


@pytest.fixture(scope="session")
def sim():
    """The device module; a process can load the device once, so all modules share it."""
    pytest.importorskip("torch")
    from cuda_morph_sim.loader import load

    return load()


@pytest.fixture(scope="session")
def python():
    """Runs a program in a fresh interpreter: for what is decided when the device is loaded."""

    def run(program: str, *, expect: int | None = 0, timeout: float = 240, **environment: str):
        path = os.pathsep.join([*map(str, SOURCES), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program],
            env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"} | environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if expect is not None:
            assert done.returncode == expect, done.stdout + done.stderr
        return done

    return run


@pytest.fixture
def limit(sim):
    """Sets the first device's capacity for one test."""
    before = sim.mem_get_info(0)[1]
    yield lambda nbytes: sim.set_memory_limit(nbytes, 0)
    sim.set_memory_limit(before, 0)
