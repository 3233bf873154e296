"""A check's report as one HTML page without anything from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph.scan.check_report import count
from cuda_morph.scan.rules import RULES
from cuda_morph.scan.source_files import MAX_SIZE

if TYPE_CHECKING:
    from cuda_morph.scan.check_report import CheckReport

_PAGE = Path(__file__).with_name("report_page.html")
_CONTEXT = 2
"""Lines shown before and after the one that was found."""


def render_html(report: CheckReport) -> str:
    """Returns the page: totals, files, and findings that can be sorted and filtered."""
    data = {
        "target": report.target,
        "files": report.files,
        "lines": report.lines,
        "suppressed": report.suppressed,
        "known": report.known,
        "totals": report.totals.as_dict(),
        "byFile": [
            {"path": path, **count(rows).as_dict()} for path, rows in report.by_file().items()
        ],
        "rows": [
            {**row.as_dict(), "source": _source(row.path, row.finding.place.line)}
            if row.finding.place.cell is None
            else {**row.as_dict(), "source": []}
            for row in report.rows
        ],
        "rules": {
            code: {"name": RULES[code].name, "why": RULES[code].why, "advice": RULES[code].advice}
            for code in report.totals.rules
        },
    }
    # "</script>" in a source line must not end the element that holds the data.
    text = json.dumps(data).replace("<", "\\u003c").replace("\u2028", "\\u2028")
    return _PAGE.read_text(encoding="utf-8").replace("/*DATA*/null", text)


def _source(path: str, line: int) -> list[tuple[int, str]]:
    lines = _lines(path)
    first, last = max(1, line - _CONTEXT), min(len(lines), line + _CONTEXT)
    return [(number, lines[number - 1][:200]) for number in range(first, last + 1)]


_read: dict[str, list[str]] = {}


def _lines(path: str) -> list[str]:
    if path not in _read:
        _read.clear()  # rows come file by file
        try:
            text = Path(path).read_text(encoding="utf-8", errors="replace")
            _read[path] = text.split("\n") if len(text) <= MAX_SIZE else []
        except OSError:
            _read[path] = []
    return _read[path]
