"""A check's report for a person at a terminal, or as plain lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cuda_morph.scan.finding import Effort, Verdict
from cuda_morph.scan.rules import GROUPS, RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cuda_morph.scan.check_report import CheckReport, Row

_COLOURS = {
    Verdict.UNCHANGED: "green",
    Verdict.REDIRECTED: "green",
    Verdict.EMULATED: "cyan",
    Verdict.REWRITABLE: "yellow",
    Verdict.UNSUPPORTED: "red",
    Verdict.UNKNOWN: "magenta",
}


def render_text(report: CheckReport, *, statistics: bool = False) -> str:
    """Returns the report as lines; colours are taken out again where there is no terminal.

    Args:
        report: What to show.
        statistics: Counts by rule instead of one line per finding.
    """
    lines = list(_statistics(report) if statistics else _findings(report))
    return "\n".join([*lines, *([""] if lines else []), *_footer(report)])


def _findings(report: CheckReport) -> Iterator[str]:
    for row in report.rows:
        verdict = row.judgement.verdict
        tag = click.style(f"[{verdict.value}]", fg=_COLOURS[verdict])
        rule = click.style(row.finding.rule, bold=True)
        yield f"{row.position}: {rule} {row.message} {tag}"
        if row.judgement.note:
            yield f"    {row.judgement.note}"


def _statistics(report: CheckReport) -> Iterator[str]:
    for code, number in sorted(report.totals.rules.items(), key=lambda item: -item[1]):
        rule = RULES[code]
        yield f"{number:>7}  {click.style(code, bold=True)}  {rule.name:<22} {rule.summary}"


def _footer(report: CheckReport) -> Iterator[str]:
    totals = report.totals
    scanned = f"{report.files:,} files, {report.lines:,} lines"
    for number, word in ((report.suppressed, "suppressed"), (report.known, "in the baseline")):
        scanned += f"; {number:,} {word}" if number else ""
    if not totals.findings:
        yield f"No CUDA dependence found in {scanned}."
        return
    target = f" on {report.target}" if report.target else " with cuda-morph"
    parts = [f"{number:,} {name}" for name, number in totals.verdicts.items() if number]
    yield (
        f"{totals.findings:,} CUDA dependence{'s' if totals.findings > 1 else ''} in {scanned}: "
        f"{', '.join(parts)} ({totals.covered:.1f} % covered{target})."
    )
    work = [
        f"{totals.efforts[effort.value]:,} take {effort.value}"
        if effort is not Effort.REWRITE
        else f"{totals.efforts[effort.value]:,} need a rewrite"
        for effort in (Effort.MINUTES, Effort.HOURS, Effort.REWRITE)
        if totals.efforts[effort.value]
    ]
    yield f"Work left: {', '.join(work) or 'none'}."
    if not report.target:
        yield "Name a backend with --target for its own answers."


def explain_rule(code: str) -> str:
    """Returns one rule as text: what it is about, why, what to do, an example."""
    rule = RULES[code]
    return "\n".join(
        [
            f"{rule.code} {rule.name}  ({GROUPS[rule.group]})",
            "",
            rule.summary,
            "",
            f"Why     {rule.why}",
            f"Advice  {rule.advice}",
            f"Verdict {rule.verdict.value}, effort {rule.effort.value}; a plugin may know better",
            "",
            f"Example:  {rule.example}",
        ]
    )


def row_line(row: Row) -> str:
    """Returns one finding as a plain line."""
    return f"{row.position}: {row.finding.rule} {row.message} [{row.judgement.verdict.value}]"
