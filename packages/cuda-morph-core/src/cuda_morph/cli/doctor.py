"""``cuda-morph doctor``: what is wrong with an installation, and what to do about it."""

from __future__ import annotations

import click

from cuda_morph.cli import output


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
    from cuda_morph.cli.findings import write_findings
    from cuda_morph.diagnosis.doctor import examine

    diagnosis = examine(plugin=plugin, full=full)
    if output_format == "json":
        output.write_json(diagnosis.as_dict())
        return int(diagnosis.failed)
    click.secho("Environment (paste this into a bug report)", bold=True)
    output.write_pairs((f"  {label}", text) for label, text in diagnosis.surroundings)
    click.echo()
    click.secho("Findings", bold=True)
    write_findings(diagnosis.findings)
    click.echo()
    counts = diagnosis.as_dict()["counts"]
    click.echo(", ".join(f"{number} {level}" for level, number in counts.items()))
    return int(diagnosis.failed)
