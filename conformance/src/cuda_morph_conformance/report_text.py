"""Reports and the checklist, as text for a person."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.vocabulary import CHECKLIST, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cuda_morph_conformance.registry import Check
    from cuda_morph_conformance.result import Report, Result

_WIDTH = 100


def render_report(report: Report) -> str:
    """Returns the whole report: a line per check, with why and fix below those that did not pass.

    Args:
        report: What the run found.
    """
    identity = report.identity
    origin = f" ({identity.dist} {identity.version})" if identity.dist else ""
    lines = [f"plugin {identity.plugin}{origin}, checklist {CHECKLIST}", ""]
    for result in report.results:
        lines.extend(_result_lines(result))
    counts = ", ".join(f"{report.count(outcome)} {outcome.value}" for outcome in Outcome)
    level = report.level.value if report.level else "none"
    evidence = report.evidence.value if report.evidence else "none (no check used a device)"
    return "\n".join([*lines, "", f"{counts} - level reached: {level} - evidence: {evidence}"])


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


def _result_lines(result: Result) -> Iterator[str]:
    check = CHECKS[result.id]
    view = f" [{result.view}]" if result.view else ""
    yield from _wrap(f"  {result.outcome.value:<8} {result.id}{view}  ", check.must)
    if result.outcome is not Outcome.PASSED:
        yield from _wrap(f"{'why: ':>16}", result.message)
    if result.outcome is Outcome.FAILED:
        yield from _wrap(f"{'fix: ':>16}", check.fix)


def _wrap(lead: str, text: str) -> list[str]:
    indent = " " * len(lead)
    return textwrap.wrap(text, _WIDTH, initial_indent=lead, subsequent_indent=indent) or [lead]
