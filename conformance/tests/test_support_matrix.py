"""The committed certificates add up, lie where they belong, and are all that the matrix shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuda_morph_conformance.matrix import read_folder, render_markdown

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "conformance" / "certificates"
PAGE = ROOT / "docs" / "support-matrix.md"
COMMAND = (
    "python -m cuda_morph_conformance matrix conformance/certificates > docs/support-matrix.md"
)
PATHS = sorted(FOLDER.rglob("certificate.json"))


def test_the_page_is_what_the_certificates_say():
    # read_folder refuses a certificate that does not add up by itself.
    assert PAGE.read_text() == render_markdown(read_folder(FOLDER)) + "\n", f"run: {COMMAND}"


@pytest.mark.parametrize("path", PATHS, ids=[path.parent.name for path in PATHS])
def test_each_lies_under_its_checklist_plugin_and_evidence(path):
    certificate = json.loads(path.read_text())
    name = f"{certificate['plugin']['plugin']}-{certificate['evidence']}"
    assert path.parent == FOLDER / certificate["checklist"]["version"] / name


SCALING = {f"{name}-simulated" for name in ("ascend", "biren", "cambricon", "enflame", "musa")}


@pytest.mark.parametrize("path", [path for path in PATHS if path.parent.name in SCALING])
def test_vendors_whose_adapter_can_be_simulated_scale(path):
    assert json.loads(path.read_text())["level"] in {"scales", "accelerates"}
