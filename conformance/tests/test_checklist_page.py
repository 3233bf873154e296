from __future__ import annotations

from pathlib import Path

from cuda_morph_conformance.checklist_page import render_document

PAGE = Path(__file__).parents[2] / "docs" / "checklist.md"


def test_the_committed_document_is_what_the_checks_say():
    assert PAGE.read_text() == render_document(), (
        "run: python -m cuda_morph_conformance.checklist_page > docs/checklist.md"
    )
