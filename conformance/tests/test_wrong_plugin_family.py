"""Each deliberately wrong plugin must fail its own check, and none of that check's neighbours.

The whole checklist is run on each by ``nox -s wrong-plugins``, or here with ``-m wrong_plugins``.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("cuda_morph_sim")

FOLDER = Path(__file__).parent / "wrong_plugins"
PROGRAM = FOLDER / "kill_rate.py"
NEIGHBOURS = 5
HALVES = 2
"""Processes at a time."""

sys.path.insert(0, str(FOLDER))

from examining import CONTROL, failed_checks, is_caught  # noqa: E402
from fault import FAULTS  # noqa: E402

from cuda_morph_conformance.checks import load_all  # noqa: E402
from cuda_morph_conformance.registry import CHECKS  # noqa: E402

load_all()


@functools.cache
def found() -> dict[str, dict]:
    """Returns what failed, by fault, among the intended checks and their neighbours."""
    parts = [list(FAULTS)[start::HALVES] for start in range(HALVES)]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{number}.json") for number in range(HALVES)]
        started = [start(path, part) for path, part in zip(paths, parts, strict=True)]
        said = [process.communicate(timeout=560)[0] for process in started]
        assert all(path.is_file() for path in paths), said
        made = [json.loads(path.read_text()) for path in paths]
    # What fails without a fault is judged against the checks of each half.
    controls = [one.pop(CONTROL) for one in made]
    return {
        name: {**result, "control": control}
        for part, control in zip(made, controls, strict=True)
        for name, result in part.items()
    }


def start(results: Path, faults: list[str]) -> subprocess.Popen:
    only = [part for name in (CONTROL, *faults) for part in ("--only", name)]
    command = [sys.executable, str(PROGRAM), str(results), "--sample", str(NEIGHBOURS), *only]
    return subprocess.Popen(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_there_are_enough_of_them_and_each_says_what_it_does():
    assert len(FAULTS) >= 32
    for fault in FAULTS.values():
        assert fault.does.endswith("."), fault.name
        assert set(fault.caught_by) <= set(CHECKS), fault.name


def test_the_areas_are_covered():
    areas = {CHECKS[one].area for fault in FAULTS.values() for one in fault.caught_by}
    assert len(areas) >= 14, areas


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", FAULTS)
def test_exactly_the_intended_checks_fail(name):
    result = found()[name]
    failed = failed_checks(result, result["control"])
    assert is_caught(name, failed), (failed, result["failed"])


@pytest.mark.parametrize("half", range(HALVES))
def test_the_plugin_without_a_fault_fails_nothing(half):
    control = found()[list(FAULTS)[half]]["control"]
    assert not [row for row in control["failed"] if row[2] == "failed"]


@pytest.mark.wrong_plugins
@pytest.mark.timeout(7200)
def test_the_whole_checklist_finds_each(tmp_path, request):
    if "wrong_plugins" not in request.config.getoption("markexpr"):
        pytest.skip("it takes long: choose it with -m wrong_plugins")
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path / "found.json")],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
