"""Each check passes on the simulated device, and fails once the device is wrong in one place."""

from __future__ import annotations

import ast
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

pytestmark = pytest.mark.long

PROGRAM = Path(__file__).parent / "programs" / "break_checks.py"
AREAS = ("DEV", "STR", "API", "MEM", "STRM", "EVT", "RNG", "DTYP")
FAIL_HERE = {
    "CM-DEV-015": "utilization",
    "CM-MEM-023": "fraction",
    "CM-MEM-024": "snapshot",
    "CM-MEM-025": "pool",
    "CM-STRM-012": "external",
    "CM-EVT-009": "ipc",
}
"""What the simulated device does not do: these checks fail without any change."""
IN_PROCESSES_OF_THEIR_OWN = {"CM-DEV-016", "CM-API-012"}

load_all()


def mutated() -> list[str]:
    tree = ast.parse(PROGRAM.with_name("mutations.py").read_text())
    [table] = [node.value for node in tree.body if getattr(node, "targets", None)
               and getattr(node.targets[0], "id", "") == "MUTATIONS"]  # fmt: skip
    return [key.value for key in table.keys]


@functools.cache
def report() -> dict[str, list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.json")
        done = subprocess.run(
            [sys.executable, str(PROGRAM), "sim", "cuda", str(path)],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert path.is_file(), done.stderr[-3000:]
        return json.loads(path.read_text())


def test_every_check_is_broken_once() -> None:
    ours = {check.id for check in CHECKS.values() if check.area in AREAS}
    assert ours == set(mutated()) | FAIL_HERE.keys() | IN_PROCESSES_OF_THEIR_OWN


@pytest.mark.parametrize("check_id", mutated())
def test_check_fails_when_the_device_is_wrong(check_id: str) -> None:
    right, broken = report()[check_id]
    assert right == "passed"
    assert broken.startswith("failed: "), broken


SOURCES = {
    "CM-API-012": (
        "from cuda_morph.device import treatments; treatments.Notices.give = lambda *_: None",
        "never said",
    ),
    "CM-DEV-016": (
        "real = Subject.run_program; Subject.run_program = lambda s, p, env: real(s, p)",
        "seen 2",
    ),
}
RUN = """
from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.registry import CHECKS, CheckFailed
from cuda_morph_conformance.subject import Subject
load_all()
{change}
try:
    CHECKS["{check_id}"].run(Subject("sim"))
except CheckFailed as failure:
    print("failed", failure)
else:
    print("passed")
"""


@pytest.mark.parametrize("check_id", SOURCES)
def test_check_with_its_own_process(check_id: str) -> None:
    change, said = SOURCES[check_id]
    for source, expected in (("", "passed"), (change, said)):
        code = RUN.format(change=source, check_id=check_id)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert expected in done.stdout, done.stderr[-2000:]
