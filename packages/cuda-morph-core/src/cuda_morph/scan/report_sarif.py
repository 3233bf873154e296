"""A check's report in SARIF 2.1.0, which code hosts and editors read.

The format: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cuda_morph.scan.finding import Verdict
from cuda_morph.scan.rules import RULES

if TYPE_CHECKING:
    from cuda_morph.scan.check_report import CheckReport, Row
    from cuda_morph.scan.finding import Place

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {
    Verdict.UNCHANGED: "none",
    Verdict.REDIRECTED: "note",
    Verdict.EMULATED: "note",
    Verdict.REWRITABLE: "warning",
    Verdict.UNSUPPORTED: "error",
    Verdict.UNKNOWN: "warning",
}


def render_sarif(report: CheckReport) -> str:
    """Returns the report as a SARIF log with one run."""
    codes = sorted(report.totals.rules)
    run = {
        "tool": {"driver": _driver(codes)},
        "columnKind": "unicodeCodePoints",
        "results": [_result(row, codes) for row in report.rows],
        "properties": {"target": report.target, **report.totals.as_dict()},
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2)


def _driver(codes: list[str]) -> dict[str, Any]:
    from cuda_morph import get_version

    return {
        "name": "cuda-morph",
        "version": get_version(),
        "rules": [_rule(code) for code in codes],
    }


def _rule(code: str) -> dict[str, Any]:
    rule = RULES[code]
    return {
        "id": code,
        "name": "".join(part.capitalize() for part in rule.name.split("-")),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.advice},
    }


def _result(row: Row, codes: list[str]) -> dict[str, Any]:
    found = row.finding
    identity = f"{row.path}\0{found.rule}\0{found.symbol}\0{found.excerpt}"
    return {
        "ruleId": found.rule,
        "ruleIndex": codes.index(found.rule),
        "level": _LEVELS[row.judgement.verdict],
        "message": {"text": f"{row.message} [{row.judgement.verdict.value}]"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(row.path)},
                    "region": _region(found.place, found.excerpt),
                }
            }
        ],
        "partialFingerprints": {
            "cudaMorph/v1": hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest()[
                :32
            ]
        },
        "properties": {
            "verdict": row.judgement.verdict.value,
            "effort": row.judgement.effort.value,
            "note": row.judgement.note,
            "cell": found.place.cell,
        },
    }


def _uri(path: str) -> str:
    file = Path(path)
    return file.as_uri() if file.is_absolute() else quote(os.fsencode(file.as_posix()))


def _region(place: Place, excerpt: str) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": place.line, "startColumn": place.column}
    if place.end_line >= place.line:
        region["endLine"] = place.end_line
        if place.end_line > place.line or place.end_column >= place.column:
            region["endColumn"] = place.end_column
    if excerpt:
        region["snippet"] = {"text": excerpt}
    return region
