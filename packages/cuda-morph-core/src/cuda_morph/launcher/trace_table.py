"""The trace of a run on standard error: operators, and calls that need attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuda_morph.trace.report import TraceLine, TraceReport

_ROWS_SHOWN = 15
_COLUMNS = ("operator", "kernel", "runs", "time", "mostly called from")
_NUMBERS = (2, 3)
_WITHOUT_KERNEL = ("fallback", "none")
"""These come first: they are what a reader looks for."""


def plain(trace: TraceReport) -> list[str]:
    """Returns the lines of the table, aligned."""
    lines = [f"  {label:<11} {text}" for label, text in _facts(trace)]
    rows = [_COLUMNS, *_rows(trace)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    for row in rows:
        cells = [
            f"{cell:>{width}}" if column in _NUMBERS else f"{cell:<{width}}"
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("    " + "  ".join(cells).rstrip())
    return lines


def show_rich(trace: TraceReport, console: Any) -> None:
    """Prints the table.

    Args:
        trace: What was recorded.
        console: A console of rich.
    """
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    for label, text in _facts(trace):
        grid.add_row(Text(f"  {label}", style="dim"), Text(text))
    console.print(grid)
    table = Table()
    for column, title in enumerate(_COLUMNS):
        table.add_column(title, justify="right" if column in _NUMBERS else "left", overflow="fold")
    for row in _rows(trace):
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def _facts(trace: TraceReport) -> list[tuple[str, str]]:
    origins = trace.totals(trace.operators)
    runs = ", ".join(f"{count} {origin}" for origin, count in origins.items())
    more = len(trace.operators) - _ROWS_SHOWN
    shown = (
        f"; {_ROWS_SHOWN} of {len(trace.operators)} below, fallbacks first, then by time"
        if more > 0
        else ""
    )
    strings = trace.device_strings
    return [
        ("strings", "not counted by this tier" if strings is None else f"{strings} redirected"),
        ("operators", f"{runs or 'none'}{shown}"),
        ("note", trace.notes[0]),
    ]


def _rows(trace: TraceReport) -> list[tuple[str, ...]]:
    ordered = sorted(trace.operators, key=lambda line: line.treatment not in _WITHOUT_KERNEL)
    return [_row(line) for line in ordered[:_ROWS_SHOWN]]


def _row(line: TraceLine) -> tuple[str, ...]:
    site = line.sites[0].text if line.sites else ""
    return (line.name, line.treatment, str(line.calls), f"{line.seconds * 1e3:.2f} ms", site)
