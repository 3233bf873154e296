"""A check's report as CSV, Markdown and workflow commands of GitHub."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from cuda_morph.scan.check_report import count
from cuda_morph.scan.finding import Verdict
from cuda_morph.scan.rules import RULES

if TYPE_CHECKING:
    from cuda_morph.scan.check_report import CheckReport, Row

COLUMNS = (
    "path",
    "cell",
    "line",
    "column",
    "rule",
    "name",
    "symbol",
    "verdict",
    "effort",
    "message",
    "note",
    "excerpt",
)
"""Columns of the CSV file."""


def render_csv(report: CheckReport) -> str:
    """Returns one line per finding; a cell that a spreadsheet would run is quoted with ``'``."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in report.rows:
        values = row.as_dict()
        writer.writerow([_harmless(values[column]) for column in COLUMNS])
    return stream.getvalue().rstrip("\n")


def _harmless(value: object) -> object:
    text = "" if value is None else str(value)
    return f"'{text}" if text[:1] in {"=", "+", "-", "@", "\t", "\r"} else text


def render_markdown(report: CheckReport) -> str:
    """Returns a table of files, then one of findings."""
    totals = report.totals
    lines = [
        f"# CUDA dependences{f' for {report.target}' if report.target else ''}",
        "",
        f"{totals.findings} findings in {report.files} files, {totals.covered:.1f} % covered.",
        "",
        f"| file | findings | covered | {' | '.join(verdict.value for verdict in Verdict)} |",
        f"|---|---|---|{'---|' * len(Verdict)}",
    ]
    for path, rows in report.by_file().items():
        own = count(rows)
        numbers = " | ".join(str(own.verdicts[verdict.value]) for verdict in Verdict)
        lines.append(f"| {_cell(path)} | {own.findings} | {own.covered:.0f} % | {numbers} |")
    lines += ["", "| place | rule | what | verdict | effort |", "|---|---|---|---|---|"]
    for row in report.rows:
        judged = row.judgement
        lines.append(
            f"| {_cell(row.position)} | {row.finding.rule} | {_cell(row.message)} | "
            f"{judged.verdict.value} | {judged.effort.value} |"
        )
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


_LEVELS = {Verdict.UNSUPPORTED: "error", Verdict.REWRITABLE: "warning", Verdict.UNKNOWN: "warning"}


def render_github(report: CheckReport) -> str:
    """Returns annotations that GitHub shows beside the lines of a pull request."""
    return "\n".join(_command(row) for row in report.rows)


def _command(row: Row) -> str:
    level = _LEVELS.get(row.judgement.verdict, "notice")
    place = row.finding.place
    properties = {
        "file": row.path,
        "line": place.line,
        "endLine": place.end_line or place.line,
        "col": place.column,
        "endColumn": place.end_column or place.column,
        "title": f"{row.finding.rule} {RULES[row.finding.rule].name}",
    }
    listed = ",".join(f"{name}={_escape(str(value), ',:')}" for name, value in properties.items())
    text = f"{row.message} [{row.judgement.verdict.value}]"
    return f"::{level} {listed}::{_escape(text)}"


def _escape(text: str, more: str = "") -> str:
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text
