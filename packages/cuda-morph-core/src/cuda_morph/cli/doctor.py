"""``cuda-morph doctor``: what is wrong with an installation, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cuda_morph.cli import output

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cuda_morph.diagnosis.finding import Finding

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red", "unknown": "cyan"}


@click.command()
@click.option("--plugin", metavar="NAME", help="The accelerator that is meant to work.")
@click.option("--full", is_flag=True, help="Also load adapters, and check absent accelerators.")
@output.format_option
def doctor(plugin: str | None, full: bool, output_format: str) -> int:
    r"""Examine this installation: versions, variables, plugins, drivers.

    The first part is made to be pasted into a bug report; secrets are left out of it. Then each
    finding is ok, warn, fail or unknown, with a next step. Code of vendors runs in child
    processes, each check for a limited time.

    Without --plugin, an accelerator whose adapter is not installed is no failure.

    Exit code 1 when something fails.

    \b
    Examples:
      cuda-morph doctor
      cuda-morph doctor --plugin cpu
      cuda-morph doctor --full --format json
    """
    from cuda_morph.diagnosis.doctor import examine

    diagnosis = examine(plugin=plugin, full=full)
    if output_format == "json":
        output.write_json(diagnosis.as_dict())
        return int(diagnosis.failed)
    click.secho("Environment (paste this into a bug report)", bold=True)
    output.write_pairs((f"  {label}", text) for label, text in diagnosis.surroundings)
    click.echo()
    click.secho("Findings", bold=True)
    _write(diagnosis.findings)
    click.echo()
    counts = diagnosis.as_dict()["counts"]
    click.echo(", ".join(f"{number} {level}" for level, number in counts.items()))
    return int(diagnosis.failed)


def _write(findings: Iterable[Finding]) -> None:
    findings = tuple(findings)
    width = max(len(finding.id) for finding in findings)
    for finding in findings:
        level = click.style(f"{finding.level.value:<7}", fg=_COLOURS[finding.level.value])
        click.echo(f"  {level}  {finding.id:<{width}}  {finding.message}")
        indent = " " * (width + 13)
        if finding.fix:
            click.echo(f"{indent}fix: {finding.fix}")
        if finding.source and finding.level.value != "ok":
            click.echo(f"{indent}source: {finding.source}")
