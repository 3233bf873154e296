"""Third-party packages that stop on this machine run unchanged under ``cuda-morph run``."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

tomllib = pytest.importorskip("tomllib")

HERE = Path(__file__).parent
PROGRAMS = tomllib.loads((HERE / "programs.toml").read_text())

pytestmark = pytest.mark.realworld


def run(name: str, *launcher: str) -> subprocess.CompletedProcess[str]:
    """Runs one program in a process of its own and returns what it said."""
    return subprocess.run(
        [sys.executable, *launcher, str(HERE / "programs" / f"{name}.py")],
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
        check=False,
    )


def test_at_least_five_packages_are_tried():
    assert len({program["requires"][0] for program in PROGRAMS.values()}) >= 5


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_pinned_version_is_installed(name):
    for text in PROGRAMS[name]["requires"]:
        requirement = Requirement(text)
        assert importlib.metadata.version(requirement.name) in requirement.specifier


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_fails_without_cuda_morph(name):
    done = run(name)
    assert done.returncode != 0
    assert PROGRAMS[name]["native"] in done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_runs_under_cuda_morph(name):
    done = run(name, "-m", "cuda_morph", "run", "--backend", "sim")
    assert done.returncode == 0, done.stdout
    missing = [line for line in PROGRAMS[name]["evidence"] if line not in done.stdout]
    assert not missing, done.stdout
