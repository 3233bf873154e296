"""Whatever works without cuda-morph works the same with it."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "plain_programs"
CELLS = [
    ("sim", "cuda", "T0"),
    ("sim", "native", "T0"),
    ("sim", "cuda", "T1"),
    ("cpu", "cuda", "T0"),
    ("cpu", "native", "T3"),
]


@functools.cache
def results(*cell: str) -> dict[str, str]:
    """Runs the list once in a fresh process."""
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith("CUDA_MORPH_") or "SIM" in k
    }
    environment["OMP_NUM_THREADS"] = "1"
    done = subprocess.run(
        [sys.executable, "run.py", *cell],
        cwd=PROGRAMS,
        env=environment,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULTS"))
    return json.loads(line.removeprefix("RESULTS"))


def test_the_list_works_without_cuda_morph():
    plain = results()
    assert len(plain) > 30
    assert not [name for name, result in plain.items() if result.startswith("raised")]


@pytest.mark.parametrize("cell", CELLS, ids="-".join)
def test_the_list_gives_the_same_with_cuda_morph(cell):
    plain, active = results(), results(*cell)
    different = {name: (plain[name], active[name]) for name in plain if plain[name] != active[name]}
    assert not different
