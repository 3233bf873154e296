"""Bars with their spread, as SVG within the page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Bar = tuple[str, float, float, float]
"""Label, value, and the ends of its spread."""

_HEIGHT, _LABEL, _WIDTH, _VALUE = 22, 330, 620, 90


def bars(title: str, entries: Sequence[Bar]) -> str:
    """Draws horizontal bars.

    Args:
        title: What the length means.
        entries: The bars, top to bottom.

    Returns:
        The SVG; empty without bars.
    """
    if not entries:
        return ""
    most = max(max(value, high) for _, value, _, high in entries) or 1.0
    height = _HEIGHT * (len(entries) + 1) + 8
    parts = [f'<text class="dim" x="{_LABEL}" y="15">{escape(title)}</text>']
    for number, entry in enumerate(entries, start=1):
        parts += _bar(entry, number * _HEIGHT + 4, _WIDTH / most)
    total = _LABEL + _WIDTH + _VALUE
    return (
        f'<svg viewBox="0 0 {total} {height}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )


def _bar(entry: Bar, top: int, scale: float) -> list[str]:
    label, value, low, high = entry
    length, middle = value * scale, top + 8
    start, end = _LABEL + max(0.0, low) * scale, _LABEL + high * scale
    return [
        f'<text x="{_LABEL - 8}" y="{top + 12}" text-anchor="end">{escape(label[:52])}</text>',
        f'<rect class="bar" x="{_LABEL}" y="{top}" width="{length:.1f}" height="16" rx="2"/>',
        f'<line class="spread" x1="{start:.1f}" x2="{end:.1f}" y1="{middle}" y2="{middle}"/>',
        f'<text x="{max(end, _LABEL + length) + 6:.1f}" y="{top + 12}">{value:.4g}</text>',
    ]
