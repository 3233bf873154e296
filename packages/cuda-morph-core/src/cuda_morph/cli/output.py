"""Tables and key-value lists: rich on a terminal, aligned plain text elsewhere."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to write the answer.",
)
"""The ``--format`` option of every command that reports something."""


_WIDEST = 100


def one_line(text: str) -> str:
    """Returns what a user gave in a form for a message: short, and no orders to the terminal."""
    shown = text if text.isprintable() and text.strip() else ascii(text)
    return shown if len(shown) <= _WIDEST else f"{shown[: _WIDEST - 4]} ..."


def write_json(value: Any) -> None:
    """Writes one JSON document to standard output."""
    click.echo(json.dumps(value, indent=2, sort_keys=False))


def write_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Writes labelled lines, one fact each."""
    lines = list(pairs)
    width = max((len(label) for label, _ in lines), default=0)
    for label, text in lines:
        click.echo(f"{label:<{width}}  {text}".rstrip())


def write_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Writes a table with a heading."""
    if sys.stdout.isatty() and _write_rich(columns, rows):
        return
    widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
    for row in [columns, *rows]:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def _write_rich(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Returns False where rich is not installed."""
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        from cuda_morph.launcher.closing import color_system
    except ImportError:
        return False
    table = Table()
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(color_system=color_system()).print(table)
    return True


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Shows a bar on standard error while something long runs, on a terminal only.

    Args:
        label: What is being done.

    Yields:
        A function to call with the number of things done and of all things.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _all: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield lambda _done, _all: None
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, all_: bar.update(task, completed=done, total=all_)
