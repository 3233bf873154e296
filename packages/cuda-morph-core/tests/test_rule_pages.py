"""The pages of the rules say what the rules say."""

from pathlib import Path

from cuda_morph.scan.rule_pages import pages

FOLDER = Path(__file__).parents[3] / "docs" / "rules"


def test_pages_are_current():
    written = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert written == pages(), "run python -m cuda_morph.scan.rule_pages docs/rules"
