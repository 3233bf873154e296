"""Third-party packages that stop on this machine run unchanged under ``cuda-morph run``."""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from packaging.requirements import Requirement

tomllib = pytest.importorskip("tomllib")

HERE = Path(__file__).parent
PROGRAMS = tomllib.loads((HERE / "programs.toml").read_text())

pytestmark = pytest.mark.realworld


def python(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs Python in a folder, in a process of its own, and returns what it said."""
    environment = {
        "PYTHONWARNINGS": "ignore",
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(HERE / "witness"), os.getenv("PYTHONPATH")])
        ),
        "REALWORLD_WITNESS": str(folder / "witness.jsonl"),
    }
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
        check=False,
    )


def run(name: str, folder: Path, *launcher: str) -> subprocess.CompletedProcess[str]:
    """Prepares one program's folder and runs it there."""
    program = PROGRAMS[name]
    scripts = sysconfig.get_path("scripts")
    if "files" in program:
        shutil.copytree(HERE / "programs" / program["files"], folder, dirs_exist_ok=True)
    for step in program.get("setup", []):
        done = python(*(part.format(scripts=scripts) for part in step), folder=folder)
        assert done.returncode == 0, done.stdout
    command = program.get("command", [str(HERE / "programs" / f"{name}.py")])
    return python(*launcher, *(part.format(scripts=scripts) for part in command), folder=folder)


def peak_of_device_memory(folder: Path) -> int:
    """Returns the most that any process of a run held on any device."""
    lines = (folder / "witness.jsonl").read_text(encoding="utf-8").splitlines()
    return max(peak for line in lines for peak in json.loads(line)["peaks"] or [0])


def test_at_least_five_packages_are_tried():
    assert len({program["requires"][0] for program in PROGRAMS.values()}) >= 5


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_pinned_version_is_installed(name):
    for text in PROGRAMS[name]["requires"]:
        requirement = Requirement(text)
        assert importlib.metadata.version(requirement.name) in requirement.specifier


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_fails_without_cuda_morph(name, tmp_path):
    done = run(name, tmp_path)
    assert done.returncode != 0
    assert PROGRAMS[name]["native"] in done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_runs_under_cuda_morph(name, tmp_path):
    done = run(name, tmp_path, "-m", "cuda_morph", "run", "--backend", "sim")
    assert done.returncode == 0, done.stdout
    missing = [line for line in PROGRAMS[name]["evidence"] if line not in done.stdout]
    assert not missing, done.stdout
    assert peak_of_device_memory(tmp_path) > 0
