"""``cuda-morph info``: versions, settings, plugins. Imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cuda_morph.cli import output

if TYPE_CHECKING:
    from cuda_morph.information import Info


@click.command()
@output.format_option
def info(output_format: str) -> int:
    r"""Show versions, settings and plugins of this environment.

    PyTorch is not imported: its version is read from the installed metadata.

    \b
    Examples:
      cuda-morph info
      cuda-morph info --format json
    """
    from cuda_morph.cli.plugins import COLUMNS, cells
    from cuda_morph.information import info as gather
    from cuda_morph.plugins import discover

    found = gather()
    rows = discover(detect=True)
    if output_format == "json":
        plugins = [row.as_dict() for row in rows]
        output.write_json({**found.as_dict(), "plugins": plugins})
        return 0
    output.write_pairs(_facts(found))
    click.echo()
    output.write_table(COLUMNS, [cells(row) for row in rows])
    return 0


def _facts(found: Info) -> list[tuple[str, str]]:
    tested = "" if found.torch_tested else " (not among the tested releases)"
    facts = [
        ("cuda-morph", found.version),
        ("python", found.python),
        ("torch", f"{found.torch}{tested}" if found.torch else "not installed"),
        ("compiled tier", found.native),
        ("active", "yes" if found.active else "no (a command line process redirects nothing)"),
    ]
    return facts + [(name, value) for name, value in sorted(found.settings.items())]
