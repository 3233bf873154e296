"""Findings as lines: level, subject, message, and below it the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cuda_morph.diagnosis.finding import Finding

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red", "unknown": "cyan"}


def write_findings(findings: Iterable[Finding]) -> None:
    """Writes findings to standard output.

    Args:
        findings: In the order in which they are shown.
    """
    findings = tuple(findings)
    width = max((len(finding.id) for finding in findings), default=0)
    for finding in findings:
        level = click.style(f"{finding.level.value:<7}", fg=_COLOURS[finding.level.value])
        click.echo(f"  {level}  {finding.id:<{width}}  {finding.message}")
        indent = " " * (width + 13)
        if finding.fix:
            click.echo(f"{indent}fix: {finding.fix}")
        if finding.source and finding.level.value != "ok":
            click.echo(f"{indent}source: {finding.source}")
