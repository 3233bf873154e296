"""``cuda-morph scaffold``: the project of a custom operator from a declaration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cuda_morph.cli import output

KINDS = ("elementwise", "reduction", "matmul")


@click.command()
@click.argument("name", metavar="OPNAME")
@click.option("--kind", type=click.Choice(KINDS), help="Default: elementwise, or as in the file.")
@click.option("--spec", "file", type=click.Path(path_type=Path), help="Declaration, as JSON.")
@click.option("--target", default="generic", show_default=True, help="Language of the kernel.")
@click.option("--into", type=click.Path(path_type=Path), help="Folder; default: OPNAME.")
@output.format_option
def scaffold(
    name: str,
    kind: str | None,
    file: Path | None,
    target: str,
    into: Path | None,
    output_format: str,
) -> int:
    r"""Write the project of an operator called OPNAME.

    The declaration says names, dtype, shapes, formula, gradients and alignment; without one an
    example of the kind is taken. The generic target is C++ for the CPU and for every accelerator
    outside of PyTorch: it builds and passes its tests at once. Other targets come with a vendor's
    plugin. A folder that holds something is never written to.

    Exit codes: 0 written, 2 error; nothing is written then.

    \b
    Examples:
      cuda-morph scaffold scaled_add
      cuda-morph scaffold row_sum --kind reduction --into operators/row_sum
      cuda-morph scaffold gelu --spec gelu.json
    """
    from cuda_morph.scaffolding.operator_project import operator_files
    from cuda_morph.scaffolding.operator_targets import find_target
    from cuda_morph.scaffolding.project_files import write_project

    files = operator_files(_declaration(name, kind, file), find_target(target))
    folder = into or Path(name)
    write_project(files, folder)
    blanks = sum(text.count("BLANK") for path, text in files.items() if path != "README.md")
    if output_format == "json":
        output.write_json({"folder": str(folder), "files": sorted(files), "blanks": blanks})
        return 0
    click.echo(f"{len(files)} files are in {folder}; README.md says how to go on.")
    return 0


def _declaration(name: str, kind: str | None, file: Path | None) -> dict[str, Any]:
    from cuda_morph.errors import SettingError
    from cuda_morph.scaffolding.operator_spec import example, read_declaration

    if file is None:
        return example(name, kind or KINDS[0])
    content = read_declaration(file)
    for key, given in (("name", name), ("kind", kind)):
        if given is not None and content.setdefault(key, given) != given:
            raise SettingError(
                f"{file} says {key} {content[key]!r}, and the command line {given!r}.",
                hint="Say the same in both places.",
            )
    return content
