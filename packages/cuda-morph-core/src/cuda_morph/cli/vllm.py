"""``cuda-morph vllm``: whether vLLM can run on an accelerator of this machine."""

from __future__ import annotations

import click

from cuda_morph.cli import output

ENTRY_COLUMNS = ("entry point", "target", "distribution", "loaded")
BACKEND_COLUMNS = ("backend", "platform", "quantisation in its vLLM", "source")


@click.command()
@click.option("--backend", metavar="NAME", help="The backend that vLLM is meant to run on.")
@click.option("--full", is_flag=True, help="Also ask platform plugins whether they are active.")
@output.format_option
def vllm(backend: str | None, full: bool, output_format: str) -> int:
    r"""Say whether vLLM is ready: packages, versions, plugins.

    vLLM reaches an accelerator through a platform plugin of the vendor; cuda-morph does not stand
    in for it. vLLM is not imported; with --full its platform plugins are, in a child process.

    Exit code 1 when something stands in the way.

    \b
    Examples:
      cuda-morph vllm
      cuda-morph vllm --backend cpu --full
    """
    from cuda_morph.cli.findings import write_findings
    from cuda_morph.diagnosis.serving import examine

    found = examine(backend, full=full)
    if output_format == "json":
        output.write_json(found.as_dict())
        return int(not found.ready)
    write_findings(found.findings)
    if found.registered:
        click.echo()
        rows = [
            (f"{one.group}: {one.name}", one.target, f"{one.distribution} {one.version}", loaded)
            for one in found.registered
            for loaded in ["yes" if one.loaded else "no"]
        ]
        output.write_table(ENTRY_COLUMNS, rows)
    click.echo()
    cells = [
        (one.backend, one.platform or "none installed", ", ".join(one.quantization), one.source)
        for one in found.notes
    ]
    output.write_table(BACKEND_COLUMNS, cells)
    return int(not found.ready)
