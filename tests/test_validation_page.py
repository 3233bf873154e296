"""``docs/validation.md`` lists every test that needs a card, for every plugin of a vendor."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "validation.md").read_text()
ROWS = {
    cells[1].strip("` "): [cell.strip() for cell in cells[3:-1]]
    for cells in (line.split("|") for line in PAGE.splitlines() if line.startswith("| `"))
}


def hardware_tests():
    tree = ast.parse((ROOT / "tests" / "test_on_hardware.py").read_text())
    return [node for node in tree.body if getattr(node, "name", "").startswith("test_")]


def test_every_test_is_listed():
    assert list(ROWS) == [node.name for node in hardware_tests()]


def test_every_plugin_has_a_column():
    [header] = [line for line in PAGE.splitlines() if line.startswith("| test |")]
    names = [cell.strip() for cell in header.split("|")[3:-1]]
    folders = {path.parent.name for path in ROOT.glob("packages/cuda-morph-*/pyproject.toml")}
    assert {f"cuda-morph-{name}" for name in names} == folders - {
        "cuda-morph-core",
        "cuda-morph-native",
        "cuda-morph-sim",
    }
    assert all(len(cells) == len(names) for cells in ROWS.values())


def test_nothing_is_said_to_have_run():
    # A result is a certificate; until one is here, no cell may say otherwise.
    certificates = list((ROOT / "conformance" / "certificates").glob("**/*.json"))
    on_hardware = [path for path in certificates if '"evidence": "hardware"' in path.read_text()]
    if not on_hardware:
        assert {cell for cells in ROWS.values() for cell in cells} == {"not run"}


def test_they_are_skipped_without_being_asked_for(pytestconfig):
    assert pytestconfig.getini("markers")
    assert (ROOT / "tests" / "test_on_hardware.py").read_text().count("pytest.mark.hardware") == 1
