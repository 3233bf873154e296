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


def test_all_means_every_package_and_no_adapter():
    direct = list(map(Requirement, EXTRAS["all"]))
    [own] = [need for need in direct if need.name == PROJECT["name"]]
    brought = [*direct, *(Requirement(line) for extra in own.extras for line in EXTRAS[extra])]
    others = {Requirement(line).name for name in set(EXTRAS) - {"all"} for line in EXTRAS[name]}
    assert {need.name for need in brought} - {PROJECT["name"]} == others
    # A vendor's adapter brings a PyTorch of its own, and only one can be there.
    assert not any("runtime" in need.extras for need in brought)


def test_every_plugin_has_an_extra():
    plugins = {path.parent.name for path in PACKAGE.parent.glob("cuda-morph-*/pyproject.toml")}
    named = {Requirement(line).name for lines in EXTRAS.values() for line in lines}
    always = {Requirement(line).name for line in PROJECT["dependencies"]}
    assert plugins <= named | always


def test_it_always_brings_the_command_line():
    [core] = [need for need in map(Requirement, PROJECT["dependencies"]) if "core" in need.name]
    assert core.extras == {"cli"}


def test_it_holds_no_code():
    outside_tests = [path for path in PACKAGE.rglob("*.py") if path.parent.name != "tests"]
    assert outside_tests == []
