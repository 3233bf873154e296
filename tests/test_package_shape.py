"""Every package of the repository has the same shape: who knows one knows all."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).parents[1]
META = ROOT / "packages" / "cuda-morph"
MEMBERS = [path.parent for path in sorted(ROOT.glob("packages/*/pyproject.toml"))]
MEMBERS += [ROOT / "conformance"]
WITH_CODE = [member for member in MEMBERS if member != META]
SOURCES = [
    path
    for member in WITH_CODE
    for path in sorted((member / "src").rglob("*"))
    if path.suffix in {".py", ".pyi", ".c", ".h", ".cpp"} and "build" not in path.parts
]
FRAGMENT = re.compile(r"\+?[a-z0-9-]+\.(feature|bugfix|doc|removal|misc)\.md")
VAGUE = {"utils", "util", "helpers", "helper", "misc", "common"}

each_member = pytest.mark.parametrize("member", MEMBERS, ids=lambda path: path.name)
each_with_code = pytest.mark.parametrize("member", WITH_CODE, ids=lambda path: path.name)


def project(member):
    return tomllib.loads((member / "pyproject.toml").read_text())


@each_member
@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "LICENSE", "changes", "tests"])
def test_has_the_common_parts(member, name):
    assert (member / name).exists()


@each_member
def test_version_is_static_and_valid(member):
    table = project(member)["project"]
    assert "dynamic" not in table
    assert Version(table["version"])


@each_member
def test_metadata_is_complete(member):
    table = project(member)["project"]
    assert table["license"] == "Apache-2.0"
    assert table["readme"] == "README.md"
    assert table["requires-python"] == ">=3.10"
    assert table["description"].endswith(".")


@each_member
def test_licence_is_the_common_one(member):
    assert (member / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@each_member
def test_readme_opens_with_the_name(member):
    name = project(member)["project"]["name"]
    assert (member / "README.md").read_text().startswith(f"# {name}\n")


@each_member
def test_fragments_are_named_for_towncrier(member):
    fragments = [path.name for path in (member / "changes").iterdir() if path.name[0] != "."]
    assert [name for name in fragments if not FRAGMENT.fullmatch(name)] == []


@each_with_code
def test_has_tests(member):
    assert list((member / "tests").rglob("test_*.py"))


@each_with_code
def test_has_one_typed_import_package_named_after_it(member):
    name = project(member)["project"]["name"].replace("-", "_").removesuffix("_core")
    packages = [path.parent.name for path in (member / "src").glob("*/__init__.py")]
    assert packages == [name]
    assert (member / "src" / name / "py.typed").exists()


@each_member
def test_is_a_member_of_the_workspace(member):
    members = project(ROOT)["tool"]["hatch"]["envs"]["default"]["workspace"]["members"]
    assert str(member.relative_to(ROOT)) in members


@each_member
def test_torch_is_never_a_dependency(member):
    table = project(member)
    needed = [*table["build-system"]["requires"], *table["project"].get("dependencies", [])]
    assert "torch" not in {Requirement(line).name.lower() for line in needed}


@each_member
def test_siblings_are_ranges_that_hold_the_sibling(member):
    versions = {item["name"]: item["version"] for item in (project(m)["project"] for m in MEMBERS)}
    table = project(member)["project"]
    lines = [*table.get("dependencies", [])]
    lines += [line for extra in table.get("optional-dependencies", {}).values() for line in extra]
    for requirement in map(Requirement, lines):
        if requirement.name in versions and requirement.name != table["name"]:
            assert requirement.specifier.contains(versions[requirement.name]), requirement
            assert {"<", "~="} & {item.operator for item in requirement.specifier}, requirement


def test_there_are_sources():
    assert len(SOURCES) > 20


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_source_is_short_and_named_for_what_it_holds(path):
    assert len(path.read_text().splitlines()) <= 500
    assert path.stem not in VAGUE


def function_lengths(path):
    """Yields name and length of each function, without its docstring."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node, clean=False) or ""
            yield node.name, node.end_lineno - node.lineno + 1 - len(text.splitlines())


PYTHON = [path for path in SOURCES if path.suffix == ".py"]


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: path.name)
def test_functions_are_short(path):
    assert [name for name, length in function_lengths(path) if length > 40] == []
