"""A certificate as one page without any other file: for people."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.vocabulary import AREAS, Level, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cuda_morph_conformance.certificate import Certificate

_STYLE = Path(__file__).parent / "page.css"

_EVIDENCE = {
    "simulated": "simulated device",
    "runtime-simulated": "simulated runtime",
    "hardware": "hardware",
    "none": "no device recorded",
}

_BAD = (Outcome.FAILED.value, Outcome.MISSING.value)


def wrap_page(title: str, body: str) -> str:
    """Make a whole page of a body.

    Args:
        title: The page's title, as plain text.
        body: Its content, as HTML.

    Returns:
        The page, which needs no other file.
    """
    style = _STYLE.read_text(encoding="utf-8")
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<meta name='color-scheme' content='light dark'>"
        f"<title>{escape(title)}</title><style>{style}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def render_page(certificate: Certificate) -> str:
    """Render a certificate.

    Args:
        certificate: What `certificate.make_certificate` made.

    Returns:
        The page.
    """
    checks = {check["id"]: check for check in certificate["checks"]}
    parts = (
        _header(certificate),
        _waivers(certificate),
        _troubles(certificate, checks),
        _areas(certificate),
        _claims(certificate),
        _environment(certificate),
        _everything(certificate, checks),
        _footer(certificate),
    )
    name = certificate["plugin"]["plugin"]
    return wrap_page(f"{name}: cuda-morph conformance", "".join(parts))


def _header(certificate: Certificate) -> str:
    plugin = certificate["plugin"]
    title = plugin["backend"].get("display_name") or plugin["plugin"]
    vendor = plugin["backend"].get("vendor") or ""
    reached = Level(certificate["level"]).rank if certificate["level"] else -1
    steps = "".join(
        f"<li class='{'on' if level.rank <= reached else 'off'}'>{level.value}</li>"
        for level in Level
    )
    counts = "".join(
        f"<span class='count {name}'><b>{count}</b> {name}</span>"
        for name, count in certificate["counts"].items()
        if count
    )
    evidence = certificate["evidence"]
    return (
        f"<header><p class='over'>cuda-morph conformance · checklist "
        f"{escape(certificate['checklist']['version'])}</p><h1>{escape(title)}</h1>"
        f"<p class='under'>{escape(vendor)} · plugin <code>{escape(plugin['plugin'])}</code> · "
        f"{escape(plugin['dist'] or 'no distribution')} {escape(plugin['version'] or '')} · "
        f"{escape(certificate['date'][:10])}</p><div class='verdict'>"
        f"<span class='badge {'good' if reached >= 0 else 'bad'}'>"
        f"{escape(certificate['level'] or 'no level')}</span>"
        f"<span class='chip {evidence}'>{_EVIDENCE[evidence]}</span></div>"
        f"<ol class='steps'>{steps}</ol><p class='counts'>{counts}</p></header>"
    )


def _waivers(certificate: Certificate) -> str:
    cards = "".join(
        f"<article class='card waived'><h3>{escape(row['check'])} "
        f"{escape(row['view'] or '')}</h3><p>{escape(row['reason'])}</p>"
        f"<p class='fine'><a href='{escape(row['issue'])}'>{escape(row['issue'])}</a> · until "
        f"{escape(row['expires'])}</p></article>"
        for row in certificate["waivers"]
    )
    return f"<section><h2>Waivers</h2>{cards}</section>" if cards else ""


def _troubles(certificate: Certificate, checks: dict[str, dict[str, Any]]) -> str:
    groups: dict[tuple[str, str, str], list[str]] = {}
    for bad in _BAD:
        for row in certificate["results"]:
            if row["outcome"] == bad:
                views = groups.setdefault((bad, row["id"], row["message"]), [])
                views.extend([row["view"]] if row["view"] else [])
    if not groups:
        return ""
    cards = "".join(
        f"<article class='card {outcome}'><h3>{escape(name)}{_views(views)}"
        f"<span class='tag {outcome}'>{outcome}</span></h3>"
        f"<p>{_prose(checks[name]['must'])}</p><pre>{escape(message or '-')}</pre>"
        f"<p class='fix'><b>Fix</b> {_prose(checks[name]['fix'])}</p></article>"
        for (outcome, name, message), views in groups.items()
    )
    return f"<section><h2>To do <small>{len(groups)}</small></h2>{cards}</section>"


def _areas(certificate: Certificate) -> str:
    lines = []
    for area, title in AREAS.items():
        own = [row["outcome"] for row in certificate["results"] if row["id"].split("-")[1] == area]
        if own:
            counts = {kind.value: own.count(kind.value) for kind in Outcome}
            bars = "".join(
                f"<i class='{name}' style='flex:{count}' title='{count} {name}'></i>"
                for name, count in counts.items()
                if count
            )
            lines.append(
                f"<div class='area'><span>{escape(title)}</span><span class='bar'>{bars}</span>"
                f"<span class='number'>{counts['passed']}/{len(own)}</span></div>"
            )
    return f"<section><h2>Areas</h2>{''.join(lines)}</section>"


def _claims(certificate: Certificate) -> str:
    by_support: dict[str, list[str]] = {}
    for name, claim in certificate["claims"].items():
        note = f" title='{escape(claim['note'], quote=True)}'" if claim["note"] else ""
        by_support.setdefault(claim["support"], []).append(f"<code{note}>{escape(name)}</code>")
    if not by_support:
        return "<section><h2>Claims</h2><p>The plugin claims nothing.</p></section>"
    lists = "".join(
        f"<details><summary>{escape(support)} <small>{len(names)}</small></summary>"
        f"<p class='codes'>{' '.join(names)}</p></details>"
        for support, names in by_support.items()
    )
    return f"<section><h2>Claims</h2>{lists}</section>"


def _environment(certificate: Certificate) -> str:
    facts = certificate["facts"]
    rows: list[tuple[str, object]] = [
        ("activated as", facts["activated"]),
        ("devices", ", ".join(facts["devices"])),
        *((f"detected {name}", value) for name, value in facts["details"].items()),
        *facts["packages"].items(),
        *certificate["environment"].items(),
        ("interception tier", facts["tier"]),
        ("duration", f"{certificate['seconds']:.0f} s"),
    ]
    if certificate["torch_suite"]:
        rows.append(("PyTorch's own tests", _counted(certificate["torch_suite"])))
    lines = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
        for name, value in rows
        if value
    )
    return f"<section><h2>Environment</h2><table class='facts'>{lines}</table></section>"


def _everything(certificate: Certificate, checks: dict[str, dict[str, Any]]) -> str:
    lines = "".join(
        f"<tr><td><code>{escape(row['id'])}</code></td><td>{escape(row['view'] or '')}</td>"
        f"<td><span class='tag {row['outcome']}'>{row['outcome']}</span></td>"
        f"<td>{_prose(checks[row['id']]['must'])}</td><td>{row['seconds']:.2f}</td></tr>"
        for row in certificate["results"]
    )
    return (
        f"<section><details><summary>All {len(certificate['results'])} results</summary>"
        "<div class='wide'><table><thead><tr><th>Check</th><th>View</th><th>Outcome</th>"
        f"<th>Sentence</th><th>s</th></tr></thead><tbody>{lines}</tbody></table></div>"
        "</details></section>"
    )


def _footer(certificate: Certificate) -> str:
    suite = certificate["suite"]
    rows: Iterable[tuple[str, str | None]] = (
        ("suite", f"{suite['dist']} {suite['version']}"),
        ("files", suite["files_sha256"]),
        ("checklist", certificate["checklist"]["sha256"]),
        ("certificate", certificate.get("sha256")),
    )
    return (
        "<footer>"
        + "<br>".join(f"{name} <code>{escape(value or '-')}</code>" for name, value in rows)
        + "<p>Check it: <code>cuda-morph-conformance verify certificate.json</code></p></footer>"
    )


def _views(views: list[str]) -> str:
    return f" <small>{escape(' and '.join(views))} view</small>" if views else ""


def _prose(text: str) -> str:
    """Returns a sentence of the checklist as HTML, with its literals set as code."""
    return re.sub("``(.+?)``", r"<code>\1</code>", escape(text))


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if isinstance(count, int))
