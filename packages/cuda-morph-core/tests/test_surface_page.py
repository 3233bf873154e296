"""The documentation page of the API table is the one that the table gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cuda_morph import api_table

PAGE = Path(__file__).parents[3] / "docs" / "cuda-surface.md"


@pytest.mark.skipif(not PAGE.parent.is_dir(), reason="the documents are not in this distribution")
def test_the_page_is_current() -> None:
    written = subprocess.run(
        [sys.executable, "-m", "cuda_morph.api_table.page"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert PAGE.read_text(encoding="utf-8") == written, (
        "run python -m cuda_morph.api_table.page > docs/cuda-surface.md"
    )


def test_every_row_is_on_the_page() -> None:
    from cuda_morph.api_table import page

    assert page.render().count("\n| `") == len(api_table.by_name())
