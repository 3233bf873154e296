"""A certificate as JUnit XML, for continuous integration."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from cuda_morph_conformance.vocabulary import AREAS, Outcome

if TYPE_CHECKING:
    from cuda_morph_conformance.certificate import Certificate

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_SKIPPED = {Outcome.UNSUPPORTED.value, Outcome.WAIVED.value}


def render_junit(certificate: Certificate) -> str:
    """Render the results, one suite per area and one case per check and view.

    Args:
        certificate: A certificate.

    Returns:
        The XML. What is missing counts as an error, what is unsupported or waived as skipped.
    """
    plugin = certificate["plugin"]["plugin"]
    root = ET.Element("testsuites", name=f"cuda-morph-conformance {plugin}")
    checks = {check["id"]: check for check in certificate["checks"]}
    for area, title in AREAS.items():
        own = [row for row in certificate["results"] if row["id"].split("-")[1] == area]
        if own:
            _add_suite(root, title, own, checks)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_suite(root: ET.Element, title: str, rows: list[dict], checks: dict) -> None:  # type: ignore[type-arg]
    outcomes = [row["outcome"] for row in rows]
    suite = ET.SubElement(
        root,
        "testsuite",
        name=title,
        tests=str(len(rows)),
        failures=str(outcomes.count(Outcome.FAILED.value)),
        errors=str(outcomes.count(Outcome.MISSING.value)),
        skipped=str(sum(outcome in _SKIPPED for outcome in outcomes)),
        time=f"{sum(row['seconds'] for row in rows):.3f}",
    )
    for row in rows:
        name = f"{row['id']}[{row['view']}]" if row["view"] else row["id"]
        seconds = f"{row['seconds']:.3f}"
        case = ET.SubElement(suite, "testcase", classname=title, name=name, time=seconds)
        text = f"{checks[row['id']]['must']}\n{row['message']}\nFix: {checks[row['id']]['fix']}"
        kind = {Outcome.FAILED.value: "failure", Outcome.MISSING.value: "error"}.get(row["outcome"])
        if row["outcome"] in _SKIPPED:
            ET.SubElement(case, "skipped", message=_xml(f"{row['outcome']}: {row['message']}"))
        elif kind:
            ET.SubElement(case, kind, message=_xml(row["message"])).text = _xml(text)


def _xml(text: str) -> str:
    """Drops the characters that XML cannot hold: a plugin may have printed anything."""
    return _NOT_XML.sub("", text)
