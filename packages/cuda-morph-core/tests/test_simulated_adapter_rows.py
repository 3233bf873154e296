"""Every row of the API table over adapters that have few names, or CUDA's under other ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import tier_cells
from test_surface_rows import HERE, PROGRAM

if TYPE_CHECKING:
    from pathlib import Path

EXPECTED = {"narrow": set(), "wide": {"torch.cuda.ComplexDoubleStorage"}}
"""Rows about a dtype that the adapter lacks."""


@pytest.mark.parametrize("view", ["cuda", "native"])
@pytest.mark.parametrize("adapter", EXPECTED)
def test_rows(adapter: str, view: str, tmp_path: Path) -> None:
    if tier_cells.simulated():
        pytest.skip(f"no simulated device: {tier_cells.simulated()}")
    settings = {name: value for name, value in os.environ.items() if "CUDA_MORPH_" not in name}
    cache = {name: os.environ[name] for name in ("CUDA_MORPH_SIM_CACHE",) if name in os.environ}
    paths = [str(HERE / "tier_programs"), *map(str, tier_cells.SITES)]
    settings |= cache | {
        "PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")]),
        "CUDA_MORPH_SIM_MEMORY": "1GiB",
        "OMP_NUM_THREADS": "1",
    }
    report = tmp_path / "rows.json"
    done = subprocess.run(
        [sys.executable, str(PROGRAM), f"sim:{adapter}", view, str(report)],
        env=settings,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert report.is_file(), done.stderr[-4000:]
    problems = {name: text for name, text in json.loads(report.read_text()).items() if text}
    wrong = {name: text for name, text in problems.items() if name not in EXPECTED[adapter]}
    assert not wrong, "\n".join(f"{name}:\n{text}" for name, text in wrong.items())
    assert set(problems) == EXPECTED[adapter]
