"""The meta package brings what its README says, and no code."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.requirements import Requirement

try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib

PACKAGE = Path(__file__).parents[1]
PROJECT = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_readme_describes_the_extra(extra):
    assert f"| `{extra}` |" in (PACKAGE / "README.md").read_text()


def test_all_means_all():
    [everything] = map(Requirement, EXTRAS["all"])
    assert everything.name == PROJECT["name"]
    assert everything.extras == set(EXTRAS) - {"all"}


def test_it_always_brings_the_command_line():
    [core] = [need for need in map(Requirement, PROJECT["dependencies"]) if "core" in need.name]
    assert core.extras == {"cli"}


def test_it_holds_no_code():
    outside_tests = [path for path in PACKAGE.rglob("*.py") if path.parent.name != "tests"]
    assert outside_tests == []
