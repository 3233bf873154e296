"""The outcome of a check: findings with their verdicts, totals per file and for the project."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, Any

from cuda_morph.frozen_record import frozen_record
from cuda_morph.scan.finding import Effort, Finding, Verdict
from cuda_morph.scan.rules import RULES, selects
from cuda_morph.scan.verdict import COVERED, Judge, Judgement

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cuda_morph.scan.file_scan import FileResult


@frozen_record
class Row:
    """One finding in its file, judged."""

    path: str
    finding: Finding
    judgement: Judgement

    @property
    def position(self) -> str:
        """``path:line:column``, with the cell of a notebook."""
        place = self.finding.place
        cell = f":cell {place.cell}" if place.cell else ""
        return f"{self.path}{cell}:{place.line}:{place.column}"

    @property
    def message(self) -> str:
        """The rule's sentence with what was found."""
        rule = RULES[self.finding.rule]
        detail = f" ({self.finding.detail})" if self.finding.detail else ""
        return f"{rule.summary.rstrip('.')}: {self.finding.symbol}{detail}"

    def as_dict(self) -> dict[str, Any]:
        """Returns the row in a form ready for JSON."""
        found, place = self.finding, self.finding.place
        return {
            "path": self.path,
            "cell": place.cell,
            "line": place.line,
            "column": place.column,
            "end_line": place.end_line,
            "end_column": place.end_column,
            "rule": found.rule,
            "name": RULES[found.rule].name,
            "symbol": found.symbol,
            "message": self.message,
            "verdict": self.judgement.verdict.value,
            "effort": self.judgement.effort.value,
            "note": self.judgement.note,
            "advice": RULES[found.rule].advice,
            "excerpt": found.excerpt,
        }


@frozen_record
class Totals:
    """Counts over some rows."""

    findings: int
    verdicts: dict[str, int] = field(default_factory=dict)
    efforts: dict[str, int] = field(default_factory=dict)
    rules: dict[str, int] = field(default_factory=dict)

    @property
    def covered(self) -> float:
        """Percentage of findings that need no work; 100 without findings."""
        if not self.findings:
            return 100.0
        good = sum(self.verdicts.get(verdict.value, 0) for verdict in COVERED)
        return 100.0 * good / self.findings

    def as_dict(self) -> dict[str, Any]:
        """Returns the totals in a form ready for JSON."""
        return {
            "findings": self.findings,
            "covered_percent": round(self.covered, 1),
            "verdicts": self.verdicts,
            "efforts": self.efforts,
            "rules": self.rules,
        }


@frozen_record
class CheckReport:
    """Everything that the formats show."""

    target: str | None
    files: int
    lines: int
    rows: tuple[Row, ...]
    suppressed: int = 0
    known: int = 0
    """Findings that the baseline has already."""

    @property
    def totals(self) -> Totals:
        """Counts over the project."""
        return count(self.rows)

    def by_file(self) -> dict[str, list[Row]]:
        """Returns the rows by path, in their order."""
        grouped: dict[str, list[Row]] = {}
        for row in self.rows:
            grouped.setdefault(row.path, []).append(row)
        return grouped


def count(rows: Iterable[Row]) -> Totals:
    """Counts verdicts, efforts and rules; every verdict and effort has an entry."""
    rows = tuple(rows)
    verdicts = Counter(row.judgement.verdict.value for row in rows)
    efforts = Counter(row.judgement.effort.value for row in rows)
    return Totals(
        findings=len(rows),
        verdicts={verdict.value: verdicts[verdict.value] for verdict in Verdict},
        efforts={effort.value: efforts[effort.value] for effort in Effort},
        rules=dict(sorted(Counter(row.finding.rule for row in rows).items())),
    )


def make_report(
    results: Sequence[FileResult],
    judge: Judge,
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> CheckReport:
    """Judges the findings that are asked for.

    Args:
        results: What the scan found.
        judge: Gives the verdicts.
        select: Codes or beginnings of codes; none: all.
        ignore: Codes or beginnings of codes to leave out; the longer of two patterns that cover a
            rule decides, as in ruff.

    Returns:
        The report.
    """
    wanted = {code for code in RULES if _is_wanted(code, select, ignore)}
    rows = tuple(
        Row(path=result.path, finding=found, judgement=judge.judge(found))
        for result in results
        for found in result.findings
        if found.rule in wanted
    )
    read = [result for result in results if not result.skipped]
    return CheckReport(
        target=judge.target,
        files=len(read),
        lines=sum(result.lines for result in read),
        rows=rows,
        suppressed=sum(result.suppressed for result in results),
    )


def _is_wanted(code: str, select: Sequence[str], ignore: Sequence[str]) -> bool:
    chosen = max((len(p) for p in select if selects(p, code)), default=-1 if select else 0)
    left_out = max((len(p) for p in ignore if selects(p, code)), default=-1)
    return chosen >= 0 and chosen > left_out if left_out >= 0 else chosen >= 0
