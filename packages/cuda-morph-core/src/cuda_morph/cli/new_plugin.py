"""``cuda-morph new-plugin``: a complete plugin package with its facts left as blanks."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from cuda_morph.cli import output


@click.command("new-plugin")
@click.argument("name")
@click.option("--into", type=click.Path(path_type=Path), help="Folder; default: cuda-morph-NAME.")
@click.option("--device-type", metavar="TYPE", help="Device as PyTorch prints it; default: NAME.")
@click.option("--vendor", help="Who makes the accelerator; default: Name.")
@click.option("--adapter-module", metavar="MODULE", help="What is imported; default: torch_TYPE.")
@click.option("--collective", metavar="NAME", help="The adapter's torch.distributed backend.")
@output.format_option
def new_plugin(
    name: str,
    into: Path | None,
    device_type: str | None,
    vendor: str | None,
    adapter_module: str | None,
    collective: str | None,
    output_format: str,
) -> int:
    r"""Write the package of a plugin called NAME.

    It installs, is found and passes the checks of the level "loads" at once, without the
    accelerator; tests, tasks and CI come with it. What nobody has said is marked BLANK and stays
    unknown. A folder that holds something is never written to.

    Exit codes: 0 written, 2 error; nothing is written then.

    \b
    Examples:
      cuda-morph new-plugin mychip
      cuda-morph new-plugin mychip --vendor "MyChip Inc." --adapter-module torch_mychip
    """
    from cuda_morph.scaffolding.plugin_project import describe, is_taken, plugin_files
    from cuda_morph.scaffolding.project_files import write_project

    plugin = describe(
        name,
        device_type=device_type,
        vendor=vendor,
        adapter_module=adapter_module,
        collective=collective,
    )
    folder = into or Path(plugin.distribution)
    files = plugin_files(plugin)
    write_project(files, folder)
    if is_taken(name):
        click.echo(
            f"warning: a plugin {name!r} is installed here; two of one name cannot be used.",
            err=True,
        )
    blanks = sum(text.count("BLANK") for path, text in files.items() if path != "README.md")
    if output_format == "json":
        output.write_json({"folder": str(folder), "files": sorted(files), "blanks": blanks})
        return 0
    click.echo(
        f"{len(files)} files are in {folder}; {blanks} places are marked BLANK, see README.md."
    )
    click.echo(f"  next step: pip install -e {shlex.quote(str(folder))} && cuda-morph plugins")
    return 0
