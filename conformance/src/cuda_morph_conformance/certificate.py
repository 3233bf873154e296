"""The certificate: everything a run found, in a form that can be checked by machine."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuda_morph.errors import SettingError
from cuda_morph_conformance.integrity import check_digest, checklist_digest, describe_suite
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.vocabulary import CHECKLIST, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cuda_morph_conformance.registry import Check
    from cuda_morph_conformance.result import Report, Verdict

FORMAT = 1
"""Version of the certificate's own form."""

FILE = "certificate.json"

Certificate = dict[str, Any]


def make_certificate(
    report: Report, *, torch_suite: Mapping[str, Any] | None = None
) -> Certificate:
    """Turn a report into a certificate.

    Args:
        report: What a run of the whole checklist found.
        torch_suite: Counts of PyTorch's own tests, where they were run.

    Returns:
        The certificate, ready for JSON, with its own digest.
    """
    digests = {check.id: check_digest(check) for check in CHECKS.values()}
    facts = report.facts.as_dict()
    made: Certificate = {
        "format": FORMAT,
        "plugin": {name: facts[name] for name in ("plugin", "dist", "version", "backend")},
        "checklist": {
            "version": CHECKLIST,
            "sha256": checklist_digest(digests),
            "checks": len(CHECKS),
        },
        "suite": describe_suite(),
        "level": report.level.value if report.level else None,
        "evidence": report.evidence.value,
        "date": dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        "seconds": report.seconds,
        "counts": {outcome.value: report.count(outcome) for outcome in Outcome},
        "environment": report.environment,
        "facts": {name: facts[name] for name in facts if name not in _ELSEWHERE},
        "claims": facts["claims"],
        "waivers": [asdict(waiver) for waiver in report.waivers],
        "checks": [{**check_row(check), "sha256": digests[check.id]} for check in CHECKS.values()],
        "results": [_result_row(verdict) for verdict in report.verdicts],
        "torch_suite": dict(torch_suite) if torch_suite is not None else None,
    }
    # What a reader of the file will have: lists for tuples.
    written: Certificate = json.loads(json.dumps(made))
    return {**written, "sha256": content_digest(written)}


_ELSEWHERE = frozenset({"plugin", "dist", "version", "backend", "claims"})


def content_digest(certificate: Mapping[str, Any]) -> str:
    """Hash a certificate without its own digest.

    It tells a damaged file from a whole one; it is no signature.

    Args:
        certificate: The content.

    Returns:
        A SHA-256 over the canonical JSON.
    """
    content = {key: value for key, value in certificate.items() if key != "sha256"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def read_certificate(path: Path) -> Certificate:
    """Read a certificate file.

    Args:
        path: The file, or the folder that holds it.

    Returns:
        The content, not verified.

    Raises:
        SettingError: The file cannot be read or holds no JSON object.
    """
    file = path / FILE if path.is_dir() else path
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{file} cannot be read: {error}.") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise SettingError(
            f"{file} is no whole certificate: {error}.", hint="It may have been cut off."
        ) from error
    if not isinstance(content, dict):
        raise SettingError(f"{file} is no certificate: it holds no JSON object.")
    return content


def write_certificate(certificate: Certificate, folder: Path) -> tuple[Path, ...]:
    """Write the certificate, and the same as JUnit XML and as a page.

    Args:
        certificate: What to write.
        folder: Where to; it is made when absent.

    Returns:
        The files.
    """
    from cuda_morph_conformance.junit import render_junit
    from cuda_morph_conformance.page import render_page

    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        FILE: json.dumps(certificate, indent=1, ensure_ascii=True) + "\n",
        "junit.xml": render_junit(certificate),
        "report.html": render_page(certificate),
    }
    for name, text in contents.items():
        folder.joinpath(name).write_text(text, encoding="utf-8")
    return tuple(folder / name for name in contents)


def schema() -> dict[str, Any]:
    """Returns the JSON schema of certificates."""
    path = Path(__file__).parent / "schema" / f"certificate-{FORMAT}.json"
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def check_row(check: Check) -> dict[str, Any]:
    """Returns how a certificate describes a check, without its digest.

    Args:
        check: A check of the checklist.
    """
    return {
        "id": check.id,
        "level": check.level.value,
        "must": check.must,
        "fix": check.fix,
        "requires": list(check.requires),
        "since": check.since,
        "devices": check.devices,
        "views": list(check.views),
    }


def _result_row(verdict: Verdict) -> dict[str, Any]:
    return {
        "id": verdict.result.id,
        "view": verdict.result.view,
        "seen": verdict.result.seen.value,
        "claim": verdict.claim.value,
        "mandatory": verdict.mandatory,
        "outcome": verdict.outcome.value,
        "message": verdict.result.message,
        "seconds": verdict.result.seconds,
    }
