"""Every row of the API table does what it says, in both views, on every tier.

One process per cell exercises all rows (``surface_programs/run_rows.py``); each row is a test.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tier_cells

from cuda_morph import api_table

HERE = Path(__file__).parent
PROGRAM = HERE / "surface_programs" / "run_rows.py"
CELLS = [
    ("T0", "sim", "cuda"),
    ("T0", "sim", "native"),
    ("T0", "cpu", "cuda"),
    ("T0", "cpu", "native"),
    ("T1", "sim", "cuda"),
    ("T1", "sim", "native"),
    ("T3", "sim", "native"),
]
ROWS = list(api_table.by_name())


@functools.cache
def problems(tier: str, backend: str, view: str, folder: Path) -> dict[str, str]:
    """Returns what is wrong with each row; the process of a cell runs once."""
    report = folder / f"{tier}-{backend}-{view}.json"
    settings = {name: value for name, value in os.environ.items() if "CUDA_MORPH_" not in name}
    cache = {name: os.environ[name] for name in ("CUDA_MORPH_SIM_CACHE",) if name in os.environ}
    paths = [str(HERE / "tier_programs"), os.environ.get("PYTHONPATH", "")]
    settings |= cache | {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "CUDA_MORPH_TIER": tier,
        "CUDA_MORPH_SIM_MEMORY": "1GiB",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, str(PROGRAM), backend, view, str(report)],
        env=settings,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert report.is_file(), done.stderr[-4000:]
    found: dict[str, str] = json.loads(report.read_text())
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rows")


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize(("tier", "backend", "view"), CELLS)
def test_row(tier: str, backend: str, view: str, row: str, folder: Path) -> None:
    if backend == "sim" and tier_cells.simulated():
        pytest.skip(f"no simulated device: {tier_cells.simulated()}")
    problem = problems(tier, backend, view, folder)[row]
    if problem:
        pytest.fail(problem, pytrace=False)
