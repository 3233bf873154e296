"""Reports and the checklist, as text for a person."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from cuda_morph_conformance.vocabulary import AREAS, CHECKLIST, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cuda_morph_conformance.registry import Check
    from cuda_morph_conformance.result import Report, Verdict

_WIDTH = 100
_SHOWN_FIRST = (Outcome.WAIVED, Outcome.FAILED, Outcome.MISSING)


def render_report(report: Report, *, verbose: bool = False) -> str:
    """Returns the report: what did not pass with why and fix, a line per area, and the level.

    Args:
        report: What the run found.
        verbose: Also list what passed.
    """
    facts = report.facts
    origin = f" ({facts.dist} {facts.version})" if facts.dist else ""
    simulation = f" as {facts.activated}" if facts.activated not in {"", facts.plugin} else ""
    lines = [f"plugin {facts.plugin}{origin}{simulation}, checklist {CHECKLIST}", ""]
    shown = [one for kind in _SHOWN_FIRST for one in report.verdicts if one.outcome is kind]
    if verbose:
        shown += [one for one in report.verdicts if one.outcome not in _SHOWN_FIRST]
    for verdict, views in _by_message(shown):
        lines.extend(_verdict_lines(verdict, views))
    lines += [*([""] if shown else []), *_area_lines(report)]
    counts = ", ".join(
        f"{report.count(outcome)} {outcome.value}"
        for outcome in Outcome
        if report.count(outcome) or outcome in {Outcome.PASSED, Outcome.FAILED, Outcome.MISSING}
    )
    level = report.level.value if report.level else "none"
    unclaimed = sum(bool(verdict.note) for verdict in report.verdicts)
    tail = [f"{unclaimed} passed without a claim; please claim them."] if unclaimed else []
    end = f"{counts} - level reached: {level} - evidence: {report.evidence.value}"
    return "\n".join([*lines, "", *tail, f"{end} - {report.seconds:.0f} s"])


def render_table(reports: Iterable[Report]) -> str:
    """Returns a line per plugin: the level it reached, on what, and its counts.

    Args:
        reports: What the runs found.
    """
    rows: list[tuple[str, ...]] = [
        ("plugin", "level", "evidence", "passed", "failed", "missing", "other", "seconds")
    ]
    for report in reports:
        main = [report.count(kind) for kind in (Outcome.PASSED, Outcome.FAILED, Outcome.MISSING)]
        rest = len(report.verdicts) - sum(main)
        level = report.level.value if report.level else "none"
        numbers = (*main, rest, round(report.seconds))
        rows.append((report.facts.plugin, level, report.evidence.value, *map(str, numbers)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def render_checklist(checks: Iterable[Check]) -> str:
    """Returns the checklist: id, level and sentence of each check.

    Args:
        checks: The checks to list.
    """
    return "\n".join(
        line
        for check in checks
        for line in _wrap(f"{check.id}  {check.level.value:<11} ", check.must)
    )


def _area_lines(report: Report) -> Iterator[str]:
    for area, title in AREAS.items():
        own = [verdict for verdict in report.verdicts if verdict.check.area == area]
        if own:
            counts = {kind: sum(one.outcome is kind for one in own) for kind in Outcome}
            rest = ", ".join(
                f"{count} {kind.value}"
                for kind, count in counts.items()
                if count and kind is not Outcome.PASSED
            )
            passed = f"{counts[Outcome.PASSED]}/{len(own)}"
            yield f"  {title:<24} {passed:>9}  {rest}".rstrip()


def _by_message(verdicts: Iterable[Verdict]) -> Iterator[tuple[Verdict, list[str]]]:
    """Joins what is the same in both views."""
    groups: dict[tuple[str, str, str], tuple[Verdict, list[str]]] = {}
    for verdict in verdicts:
        result = verdict.result
        key = (result.id, verdict.outcome.value, result.message)
        views = groups.setdefault(key, (verdict, []))[1]
        views.extend([result.view] if result.view else [])
    yield from groups.values()


def _verdict_lines(verdict: Verdict, views: list[str]) -> Iterator[str]:
    result, check = verdict.result, verdict.check
    view = f" [{', '.join(views)}]" if views else ""
    yield from _wrap(f"  {verdict.outcome.value:<8} {result.id}{view}  ", check.must)
    if result.message:
        yield from _wrap(f"{'why: ':>16}", result.message)
    if verdict.waiver is not None:
        text = f"{verdict.waiver.reason} {verdict.waiver.issue}, until {verdict.waiver.expires}"
        yield from _wrap(f"{'waiver: ':>16}", text)
    if verdict.outcome is Outcome.FAILED:
        yield from _wrap(f"{'fix: ':>16}", check.fix)


def _wrap(lead: str, text: str) -> list[str]:
    indent = " " * len(lead)
    return textwrap.wrap(text, _WIDTH, initial_indent=lead, subsequent_indent=indent) or [lead]
