"""The trace as one self-contained HTML page."""

from __future__ import annotations

from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cuda_morph.trace.report import SiteLine, TraceLine, TraceReport

_TEMPLATE = Path(__file__).with_name("page.html")

_HINTS = {
    "redirect": "answered by the accelerator",
    "alias": "another name of the same thing",
    "emulate": "PyTorch's own code over the accelerator",
    "stub": "accepted without effect",
    "refuse": "raised, with a reason",
    "own": "the backend has a kernel for it",
    "fallback": "the backend has none; its fallback ran it, as a rule on the CPU",
    "composed": "made of other operators, which have rows of their own",
    "none": "the backend has neither kernel nor fallback",
}


def render(report: TraceReport, title: str, facts: tuple[tuple[str, str], ...]) -> str:
    """Returns the page. Whatever comes from the program is escaped.

    Args:
        report: What was recorded.
        title: What was traced.
        facts: Further labelled lines for the head of the page.
    """
    strings = report.device_strings
    head = (
        *facts,
        ("backend", f"{report.backend} ({report.display_name})"),
        ("view, tier", f"{report.view}, {report.tier}"),
        (
            "device strings redirected",
            "not counted by this tier" if strings is None else f"{strings:,}",
        ),
    )
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(title or "cuda-morph trace"),
        simulated='<span class="mark">simulated</span>' if report.simulated else "",
        facts="".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in head),
        notes="".join(f"<li>{escape(note)}</li>" for note in report.notes),
        call_totals=_totals(report.totals(report.calls), "calls"),
        operator_totals=_totals(report.totals(report.operators), "runs"),
        calls=_rows(report.calls, "No CUDA name was called."),
        operators=_rows(report.operators, "No operator ran on the accelerator."),
    )


def _totals(totals: dict[str, int], unit: str) -> str:
    return "".join(
        f'<span class="total {escape(name)}" title="{escape(_HINTS.get(name, ""))}">'
        f"<b>{count:,}</b> {escape(name)} <small>{unit}</small></span>"
        for name, count in sorted(totals.items(), key=lambda item: -item[1])
    )


def _rows(lines: tuple[TraceLine, ...], empty: str) -> str:
    if not lines:
        return f'<tr><td colspan="6" class="empty">{escape(empty)}</td></tr>'
    most = max(line.calls for line in lines)
    longest = max(line.seconds for line in lines) or 1.0
    return "\n".join(_row(line, most, longest) for line in lines)


def _row(line: TraceLine, most: int, longest: float) -> str:
    kind = escape(line.treatment)
    raised = f' <span class="raised">{line.raised:,} raised</span>' if line.raised else ""
    return (
        f'<tr><td data-key="{escape(line.name)}"><code>{escape(line.name)}</code>{raised}</td>'
        f'<td data-key="{kind}"><span class="tag {kind}" title="{escape(_HINTS.get(kind, ""))}">'
        f"{kind}</span></td>"
        f"{_bar(line.calls, f'{line.calls:,}', line.calls / most)}"
        f"{_bar(line.seconds, duration(line.seconds), line.seconds / longest)}"
        f"<td class=number data-key={line.seconds / line.calls:.9f}>"
        f"{duration(line.seconds / line.calls)}</td>"
        f"<td>{_sites(line.sites, line.other_sites)}</td></tr>"
    )


def _bar(value: float, text: str, share: float) -> str:
    return (
        f'<td class="number bar" data-key="{value:.9f}">'
        f'<i style="--share:{share:.3f}"></i><span>{escape(text)}</span></td>'
    )


def _sites(sites: tuple[SiteLine, ...], others: int) -> str:
    if not sites:
        return ""
    first, *more = [_site(site) for site in sites]
    if not more:
        return first
    rest = "".join(f"<li>{site}</li>" for site in more)
    further = f"<li>and {others} more places</li>" if others else ""
    places = len(more) + others
    return f"{first}<details><summary>{places} more</summary><ul>{rest}{further}</ul></details>"


def _site(site: SiteLine) -> str:
    name = site.file.replace("\\", "/").rpartition("/")[2]
    short = f"{name}:{site.line}" if site.line else site.file
    return (
        f'<span title="{escape(site.text)}">{escape(short)}</span> <small>{site.calls:,}x</small>'
    )


def duration(seconds: float) -> str:
    """Returns a time in the unit that suits it."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    if seconds >= 1e-3:  # noqa: PLR2004 - a millisecond
        return f"{seconds * 1e3:.2f} ms"
    return f"{seconds * 1e6:.1f} µs"
