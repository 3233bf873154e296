"""Each check of attention passes on the simulated device, and fails with a kernel that is wrong."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.registry import CHECKS

PROGRAM = Path(__file__).parent / "programs" / "break_attention.py"

load_all()
IDS = [one.id for one in CHECKS.values() if one.area == "ATTN"]


@functools.cache
def report() -> dict[str, list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.json")
        done = subprocess.run(
            [sys.executable, str(PROGRAM), str(path)],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert path.is_file(), done.stderr[-3000:]
        return json.loads(path.read_text())


@pytest.mark.long
@pytest.mark.parametrize("check_id", IDS)
def test_check_passes_and_fails_where_the_kernel_is_wrong(check_id: str) -> None:
    right, broken = report()[check_id]
    if right.startswith("missing: transformers"):
        pytest.skip(right)
    assert right == "passed"
    assert broken.startswith("failed: "), broken
