"""The report for a person: a table with rich on a terminal, plain text when piped."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rows import Row

COLUMNS = ("family", "what", "where", "base", "measured", "result", "spread", "budget", "")


def _number(value: float | None, unit: str = "") -> str:
    if value is None:
        return ""
    return f"{value:.4g} {unit}".rstrip() if value < 1e5 else f"{value:.0f} {unit}".rstrip()


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def cells(row: Row) -> tuple[str, ...]:
    """Returns a row as text."""
    signs = {"ratio": f"{row.result:.2f} x", "extra": f"{row.result:+.3g} {row.unit}"}
    spread = {"ratio": " x"}.get(row.budget.kind, f" {row.unit}".rstrip())
    return (
        row.family,
        row.name,
        row.where,
        _number(row.baseline, row.unit),
        _number(row.measured, row.unit),
        signs.get(row.budget.kind, ""),
        "" if row.spread is None else _short(row.spread) + spread,
        row.budget.text(row.unit),
        "ok" if row.passes else "OVER",
    )


def show(rows: list[Row]) -> None:
    """Writes the table to standard output."""
    if sys.stdout.isatty() and _show_rich(rows):
        return
    lines = [COLUMNS, *(cells(row) for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(COLUMNS))]
    for line in lines:
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print(text.rstrip())


def _show_rich(rows: list[Row]) -> bool:
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    table = Table(title="cuda-morph: what it costs")
    for number, column in enumerate(COLUMNS):
        table.add_column(column, justify="right" if 3 <= number <= 6 else "left")
    family = ""
    for row in rows:
        if row.family != family:
            table.add_section()
        texts = [Text(cell) for cell in cells(row)]
        texts[-1].stylize("green" if row.passes else "bold red")
        if row.family == family:
            texts[0] = Text("")
        family = row.family
        table.add_row(*texts)
    Console().print(table)
    return True
