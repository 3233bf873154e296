"""``cuda-morph plugins``: every plugin that was found, also the broken ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cuda_morph.cli import output

if TYPE_CHECKING:
    from cuda_morph.plugins import PluginRow

COLUMNS = ("name", "status", "distribution", "spec", "devices", "load", "remarks")


@click.command()
@output.format_option
def plugins(output_format: str) -> int:
    r"""Show every installed plugin: its state, its devices and, if broken, the error.

    Exit code 1 when a plugin is broken, incompatible or in conflict with another one.

    \b
    Examples:
      cuda-morph plugins
      CUDA_MORPH_BLOCK=mychip cuda-morph plugins --format json
    """
    from cuda_morph.plugin_status import FAULTY
    from cuda_morph.plugins import discover, unmatched_names

    rows = discover(detect=True)
    warnings = unmatched_names()
    if output_format == "json":
        output.write_json({"plugins": [row.as_dict() for row in rows], "warnings": list(warnings)})
    else:
        output.write_table(COLUMNS, [cells(row) for row in rows])
        for warning in warnings:
            click.echo(f"warning: {warning}", err=True)
    return int(any(row.status in FAULTY for row in rows))


def cells(row: PluginRow) -> tuple[str, ...]:
    """Returns one plugin's cells in the order of `COLUMNS`."""
    devices = "-" if row.detection is None else str(row.detection.device_count)
    if row.backend is not None and row.backend.simulated:
        devices += " (simulated)"
    error = type(row.error).__name__ if row.error else ""
    reason = row.reason or (row.detection.reason if row.detection else "")
    remarks = [reason if error in reason else f"{error}: {reason}", *row.notes]
    return (
        row.name,
        row.status.value,
        f"{row.dist} {row.version or ''}".rstrip(),
        row.spec or "-",
        devices,
        f"{row.load_seconds * 1e3:.0f} ms",
        "; ".join(filter(None, remarks)),
    )
