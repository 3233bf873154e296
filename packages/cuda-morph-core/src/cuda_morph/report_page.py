"""One self-contained HTML page with facts, sortable tables and plots; everything is escaped."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from cuda_morph.frozen_record import frozen_record

if TYPE_CHECKING:
    from collections.abc import Sequence

_TEMPLATE = Path(__file__).with_name("report_page.html")
_NUMBER = re.compile(r"-?[\d.,]+(e[-+]?\d+)?( ?[a-zµ%/]+)?")
_STATES = frozenset({"pass", "fail", "unsupported", "partly", "native", "own", "fallback", "none"})
_STATES |= {"crashed", "timed out", "not run"}


@frozen_record
class PageTable:
    """A table of texts under a heading."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    plot: str = ""
    """SVG above the table; the only text that is not escaped here."""


def render(
    title: str,
    facts: Sequence[tuple[str, str]],
    tables: Sequence[PageTable],
    *,
    notes: Sequence[str] = (),
    simulated: bool = False,
) -> str:
    """Returns the page.

    Args:
        title: Heading.
        facts: Labelled lines below it.
        tables: What was found.
        notes: What a reader must know to judge it, a sentence each.
        simulated: Mark the page: no hardware took part.
    """
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(title),
        mark='<span class="mark">simulated</span>' if simulated else "",
        facts="".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts),
        notes=f'<ul class="notes">{items}</ul>' if items else "",
        sections="\n".join(_section(table) for table in tables),
    )


def _section(table: PageTable) -> str:
    head = "".join(f"<th><button>{escape(name)}</button></th>" for name in table.columns)
    rows = "\n".join("<tr>" + "".join(_cell(text) for text in row) + "</tr>" for row in table.rows)
    empty = f'<tr><td colspan="{len(table.columns)}" class="empty">Nothing.</td></tr>'
    return (
        f'<section class="card"><h2>{escape(table.title)}</h2>{table.plot}<div class="scroll">'
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>{rows or empty}</tbody></table></div>"
        "</section>"
    )


def _cell(text: str) -> str:
    if text in _STATES:
        return f'<td><span class="{text.replace(" ", "-")}">{text}</span></td>'
    kind = ' class="number"' if _NUMBER.fullmatch(text) else ""
    return f"<td{kind}>{escape(text)}</td>"
