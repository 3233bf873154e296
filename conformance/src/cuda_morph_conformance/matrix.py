"""The support matrix, made of submitted certificates and of nothing else."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from cuda_morph.errors import SettingError
from cuda_morph_conformance.certificate import FILE, read_certificate
from cuda_morph_conformance.verify import find_problems
from cuda_morph_conformance.vocabulary import AREAS, Evidence, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cuda_morph_conformance.certificate import Certificate

_TITLES = {
    Evidence.HARDWARE: "On hardware",
    Evidence.RUNTIME_SIMULATED: "The vendor's software over a simulated runtime",
    Evidence.SIMULATED: "On a simulated device",
    Evidence.NONE: "Without evidence of a device",
}

_HEADER = ("Plugin", "Version", "Level", "PyTorch", "Checklist", "Date")

_CLEAN = {Outcome.PASSED.value, Outcome.UNDERDECLARED.value}

Table = tuple[str, list[str], list[list[str]]]
"""Title, header and rows."""


def read_folder(folder: Path) -> list[Certificate]:
    """Read the certificates below a folder.

    Args:
        folder: Where to look for files called ``certificate.json``.

    Returns:
        The certificates, by plugin and date.

    Raises:
        SettingError: The folder does not exist, or a certificate does not add up.
    """
    if not folder.is_dir():
        raise SettingError(f"{folder} is no folder.")
    found = []
    for path in sorted(folder.rglob(FILE)):
        certificate = read_certificate(path)
        problems = find_problems(certificate, alone=True)
        if problems:
            raise SettingError(
                f"{path} does not add up: {problems[0]}.", hint="cuda-morph-conformance verify"
            )
        found.append(certificate)
    return sorted(found, key=lambda one: (one["plugin"]["plugin"], one["date"]))


def render_markdown(certificates: Iterable[Certificate]) -> str:
    """Render the matrix as Markdown, one table per class of evidence.

    Args:
        certificates: What `read_folder` read.

    Returns:
        The text.
    """
    parts = ["# Support matrix", "", _INTRODUCTION, ""]
    tables = _tables(certificates)
    for title, header, rows in tables:
        lines = [header, ["---"] * len(header), *rows]
        parts += [f"## {title}", "", *(f"| {' | '.join(map(_cell, line))} |" for line in lines), ""]
    return "\n".join(parts if tables else [*parts, "No certificate has been submitted yet."])


def render_html(certificates: Iterable[Certificate]) -> str:
    """Render the matrix as a page, one table per class of evidence.

    Args:
        certificates: What `read_folder` read.

    Returns:
        The page.
    """
    from cuda_morph_conformance.page import wrap_page

    body = [f"<h1>Support matrix</h1><p>{html.escape(_INTRODUCTION)}</p>"]
    for title, header, rows in _tables(certificates):
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
        lines = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows
        )
        body.append(
            f"<h2>{html.escape(title)}</h2><div class='wide'><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{lines}</tbody></table></div>"
        )
    if len(body) == 1:
        body.append("<p>No certificate has been submitted yet.</p>")
    return wrap_page("cuda-morph support matrix", "".join(body))


_INTRODUCTION = (
    "Made from the certificates in conformance/certificates. A number is the share of results in "
    "an area that passed; a class of evidence never mixes with another."
)


def _tables(certificates: Iterable[Certificate]) -> list[Table]:
    listed = list(certificates)
    tables: list[Table] = []
    for evidence, title in _TITLES.items():
        own = [one for one in listed if one["evidence"] == evidence.value]
        areas = [area for area in AREAS if any(_share(one, area) for one in own)]
        header = [*_HEADER, *(AREAS[area] for area in areas)]
        if own:
            rows = [[*_identity(one), *(_share(one, area) for area in areas)] for one in own]
            tables.append((title, header, rows))
    return tables


def _identity(certificate: Certificate) -> list[str]:
    plugin = certificate["plugin"]
    return [
        plugin["plugin"],
        plugin["version"] or "",
        certificate["level"] or "none",
        certificate["environment"].get("torch") or "",
        certificate["checklist"]["version"],
        certificate["date"][:10],
    ]


def _share(certificate: Certificate, area: str) -> str:
    own = [row for row in certificate["results"] if row["id"].split("-")[1] == area]
    passed = sum(row["outcome"] in _CLEAN for row in own)
    return f"{passed}/{len(own)}" if own else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
