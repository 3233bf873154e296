"""``cuda-morph compile``: which torch.compile backend to name, and what is registered."""

from __future__ import annotations

import click

from cuda_morph.cli import output

REGISTERED_COLUMNS = ("registered", "tags", "from")
CLAIM_COLUMNS = ("backend", "capability", "claim", "note")


@click.command("compile")
@click.option("--backend", metavar="NAME", help="Activate this backend and say what fits it.")
@click.option("--full", is_flag=True, help="Also compile a small function and compare its result.")
@output.format_option
def compile_(backend: str | None, full: bool, output_format: str) -> int:
    r"""Say which torch.compile backend fits an accelerator, and what is registered with Dynamo.

    PyTorch is asked in a child process. The claims below are those of the plugins.

    Exit code 1 when the backend cannot be activated or, with --full, the compiled function fails.

    \b
    Examples:
      cuda-morph compile
      cuda-morph compile --backend cpu --full
    """
    from cuda_morph.cli.findings import write_findings
    from cuda_morph.diagnosis.compilers import advise

    advice = advise(backend, full=full)
    if output_format == "json":
        output.write_json(advice.as_dict())
        return int(advice.failed)
    if advice.choice is not None:
        click.secho(f'torch.compile(model, backend="{advice.choice}")', bold=True)
        click.echo(f"  {advice.why}")
        click.echo()
    write_findings(advice.findings)
    if advice.registered:
        click.echo()
        shown = [
            one for one in advice.registered if "debug" not in one.tags or one.name == advice.choice
        ]
        rows = [(one.name, ", ".join(one.tags), one.source) for one in shown]
        output.write_table(REGISTERED_COLUMNS, rows)
        click.echo(f"and {len(advice.registered) - len(shown)} for debugging (--format json)")
    if advice.claims:
        click.echo()
        cells = [(one.backend, one.id, one.support, one.note) for one in advice.claims]
        output.write_table(CLAIM_COLUMNS, cells)
    return int(advice.failed)
