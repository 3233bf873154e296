"""Findings that are known already: a check reports only what is new.

A finding is recognised by its rule, its symbol and the text of its line, not by its number: code
that moves stays known.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cuda_morph.atomic_file import AtomicFile
from cuda_morph.errors import MorphError

if TYPE_CHECKING:
    from pathlib import Path

    from cuda_morph.scan.check_report import CheckReport, Row

_FORMAT = 1


def write_baseline(file: Path, report: CheckReport) -> None:
    """Writes the findings of a report as known.

    Args:
        file: Where; replaced whole or not at all.
        report: What to write.

    Raises:
        MorphError: It cannot be written (``CM-E15``).
    """
    counts = Counter(_key(row, file.parent) for row in report.rows)
    entries = [
        {"path": path, "rule": rule, "symbol": symbol, "excerpt": excerpt, "count": number}
        for (path, rule, symbol, excerpt), number in sorted(counts.items())
    ]
    text = json.dumps({"format": _FORMAT, "findings": entries}, indent=1) + "\n"
    AtomicFile(file, "baseline", "Choose another file with --baseline.").write(text)


def apply_baseline(file: Path, report: CheckReport) -> CheckReport:
    """Takes the known findings out of a report.

    Args:
        file: The baseline.
        report: What was found now.

    Returns:
        The report with what is new, and the number of what was known.

    Raises:
        MorphError: The file cannot be read or is no baseline (``CM-E15``).
    """
    known = _read(file)
    new = []
    for row in report.rows:
        key = _key(row, file.parent)
        if known[key] > 0:
            known[key] -= 1
        else:
            new.append(row)
    return replace(report, rows=tuple(new), known=len(report.rows) - len(new))


def _key(row: Row, root: Path) -> tuple[str, str, str, str]:
    path = os.path.relpath(row.path, root).replace(os.sep, "/")
    return path, row.finding.rule, row.finding.symbol, row.finding.excerpt


def _read(file: Path) -> Counter[tuple[str, str, str, str]]:
    try:
        data: Any = json.loads(file.read_text(encoding="utf-8"))
        _check_format(data["format"])
        counts = {
            (e["path"], e["rule"], e["symbol"], e["excerpt"]): int(e["count"])
            for e in data["findings"]
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MorphError(
            f"The baseline {file} cannot be read: {error}.",
            hint="Write a new one with --write-baseline.",
            code="CM-E15",
        ) from error
    return Counter(counts)


def _check_format(found: object) -> None:
    if found != _FORMAT:
        raise ValueError(f"format {found!r}, expected {_FORMAT}")
