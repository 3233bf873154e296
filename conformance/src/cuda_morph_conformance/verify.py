"""Judges a certificate: everything in it that follows from something else is computed again."""

from __future__ import annotations

import datetime as dt
import itertools
from collections import Counter
from importlib import import_module
from typing import TYPE_CHECKING, Any

from packaging.version import InvalidVersion, Version

from cuda_morph.capabilities import CAPABILITIES
from cuda_morph.errors import SettingError
from cuda_morph.records import Support
from cuda_morph_conformance.certificate import FORMAT, check_row, content_digest, schema
from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.facts import Facts, decide_evidence
from cuda_morph_conformance.integrity import check_digest, checklist_digest, describe_suite
from cuda_morph_conformance.outcomes import holds, is_mandatory, judge, reached, weakest
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.vocabulary import CHECKLIST, Level, Outcome, Seen
from cuda_morph_conformance.waivers import Waiver, current_day, find_waiver, parse_waiver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cuda_morph_conformance.certificate import Certificate

_SHOWN = 8
"""How many problems of one kind are listed before the rest is counted."""

Key = tuple[str, str | None]


def find_problems(
    certificate: Certificate, *, today: dt.date | None = None, alone: bool = False
) -> list[str]:
    """Say what does not add up in a certificate.

    Args:
        certificate: The content of a certificate file, from anyone.
        today: The day to judge waivers by; by default the present one.
        alone: Judge it by itself only, not by the suite and checklist installed here: for older
            certificates.

    Returns:
        One sentence per problem; none when everything follows from what was seen.
    """
    load_all()
    if certificate.get("format") != FORMAT:
        return [f"its format is {certificate.get('format')!r}; this suite reads format {FORMAT}"]
    malformed = list(_against_schema(certificate))
    if malformed:
        return malformed
    day = today or current_day()
    found: list[str] = []
    for rule in _RULES if alone else (*_RULES, *_RULES_OF_THIS_SUITE):
        problems = list(rule(certificate, day))
        found += problems[:_SHOWN]
        if len(problems) > _SHOWN:
            found.append(f"... and {len(problems) - _SHOWN} more like the one above")
    return found


def notes(certificate: Certificate) -> list[str]:
    """Say what a reader should know of a certificate that adds up.

    Args:
        certificate: A verified certificate.

    Returns:
        A few sentences.
    """
    plugin, counts = certificate["plugin"], certificate["counts"]
    level = certificate["level"] or "no level"
    lines = [
        f"{plugin['plugin']} {plugin['version'] or ''} reaches {level}",
        f"evidence: {certificate['evidence']}, checklist {certificate['checklist']['version']}",
        ", ".join(f"{count} {name}" for name, count in counts.items() if count),
    ]
    lines += [f"waived {row['check']}: {row['reason']}" for row in certificate["waivers"]]
    if certificate["suite"]["editable"]:
        lines.append("the suite was a working copy, not an installed wheel")
    return lines


def _against_schema(certificate: Certificate) -> Iterator[str]:
    validator = import_module("jsonschema").Draft202012Validator(schema())
    for error in itertools.islice(validator.iter_errors(certificate), _SHOWN):
        where = "/".join(map(str, error.absolute_path)) or "the certificate"
        yield f"{where}: {error.message[:300]}"


def _digest(certificate: Certificate, _day: dt.date) -> Iterator[str]:
    if certificate["sha256"] != content_digest(certificate):
        yield "its content was changed after it was written: sha256 is not that of the content"


def _listed(certificate: Certificate, _day: dt.date) -> Iterator[str]:
    said, rows = certificate["checklist"], certificate["checks"]
    digests = {row["id"]: row["sha256"] for row in rows}
    if said["checks"] != len(rows) or len(digests) != len(rows):
        yield f"it counts {said['checks']} checks and lists {len(digests)}"
    if said["sha256"] != checklist_digest(digests, said["version"]):
        yield "the checklist's sha256 is not that of the checks it lists"
    if certificate["suite"]["modified"]:
        yield f"the suite had been changed: {', '.join(certificate['suite']['modified'])}"


def _suite(certificate: Certificate, _day: dt.date) -> Iterator[str]:
    there, here = certificate["suite"], describe_suite()
    try:
        newer = Version(there["version"]) > Version(here["version"])
    except InvalidVersion:
        yield f"{there['version']!r} is no version of the suite"
        return
    if newer:
        yield f"it was made by suite {there['version']}; this is {here['version']}, which is older"
    wheels = not (there["editable"] or here["editable"])
    same = there["version"] == here["version"]
    if wheels and same and there["files_sha256"] != here["files_sha256"]:
        yield f"its suite has the version {here['version']} of this one, and other files"


def _checklist(certificate: Certificate, _day: dt.date) -> Iterator[str]:
    said, rows = certificate["checklist"], certificate["checks"]
    if said["version"] != CHECKLIST:
        yield (
            f"its checklist is {said['version']}; this suite has {CHECKLIST}: certify again, or "
            "verify with a suite of that checklist"
        )
        return
    yield from _ids("check", {row["id"] for row in rows}, set(CHECKS))
    for row in rows:
        check = CHECKS.get(row["id"])
        if check is None:
            continue
        own = {**check_row(check), "sha256": row["sha256"]}
        if row != own:
            yield f"{row['id']} is described otherwise than in this checklist"
        elif row["sha256"] != check_digest(check):
            yield f"{row['id']} was another check when this was made: its source differs"


def _results(certificate: Certificate, _day: dt.date) -> Iterator[str]:
    keys = [(row["id"], row["view"]) for row in certificate["results"]]
    for key, count in Counter(keys).items():
        if count > 1:
            yield f"{_name(key)} has {count} results"
    due = {(row["id"], view) for row in certificate["checks"] for view in (row["views"] or [None])}
    yield from _ids("result", {_name(key) for key in keys}, {_name(key) for key in due})


def _outcomes(certificate: Certificate, day: dt.date) -> Iterator[str]:
    made = dt.datetime.fromisoformat(certificate["date"]).date()
    requires = {row["id"]: row["requires"] for row in certificate["checks"]}
    claims = {name: Support(row["support"]) for name, row in certificate["claims"].items()}
    waivers, problems = _waivers(certificate)
    yield from problems
    del day
    plugin = certificate["plugin"]
    for row in certificate["results"]:
        names = requires.get(row["id"], [])
        claim = weakest(claims, names)
        who = {"plugin": plugin["plugin"], "version": plugin["version"]}
        waiver = find_waiver(waivers, row["id"], row["view"], **who, today=made)
        waived = waiver is not None and row["seen"] != Seen.PASSED.value
        outcome = judge(Seen(row["seen"]), claim, waived=waived)
        where = _name((row["id"], row["view"]))
        if row["claim"] != claim.value:
            yield f"{where}: the claim is {claim.value}, not {row['claim']}"
        if row["mandatory"] != is_mandatory(names):
            yield f"{where}: mandatory is {is_mandatory(names)}, not {row['mandatory']}"
        if row["outcome"] != outcome.value:
            yield f"{where}: {row['seen']} counts as {outcome.value}, not {row['outcome']}"


def _claims(certificate: Certificate, _day: dt.date) -> Iterator[str]:
    unknown = sorted(set(certificate["claims"]) - set(CAPABILITIES))
    if unknown:
        yield f"claims of unknown capabilities: {', '.join(unknown)}"


def _expiry(certificate: Certificate, day: dt.date) -> Iterator[str]:
    for waiver in _waivers(certificate)[0]:
        if waiver.expired(day):
            yield f"the waiver of {waiver.check} expired on {waiver.expires}"


def _counts(certificate: Certificate, _day: dt.date) -> Iterator[str]:
    counted = Counter(row["outcome"] for row in certificate["results"])
    for outcome in Outcome:
        said = certificate["counts"][outcome.value]
        if said != counted[outcome.value]:
            yield f"it counts {said} {outcome.value}; there are {counted[outcome.value]}"


def _level(certificate: Certificate, _day: dt.date) -> Iterator[str]:
    held = {
        (row["id"], row["view"])
        for row in certificate["results"]
        if holds(Outcome(row["outcome"]), mandatory=row["mandatory"])
    }
    level = reached(
        (Level(row["level"]), (row["id"], view) in held)
        for row in certificate["checks"]
        for view in (row["views"] or [None])
    )
    said = certificate["level"]
    if said != (level.value if level else None):
        yield f"its level is {said or 'none'}; the results give {level.value if level else 'none'}"


def _evidence(certificate: Certificate, _day: dt.date) -> Iterator[str]:
    levels = {row["id"]: row["level"] for row in certificate["checks"]}
    used = any(
        row["seen"] == Seen.PASSED.value and levels.get(row["id"]) != Level.LOADS.value
        for row in certificate["results"]
    )
    facts = Facts(**{**certificate["facts"], **certificate["plugin"]})
    evidence = decide_evidence(facts, used=used)
    if certificate["evidence"] != evidence.value:
        yield (
            f"its evidence is {certificate['evidence']}; the recorded facts give {evidence.value}"
        )


_RULES: tuple[Callable[[Certificate, dt.date], Iterator[str]], ...] = (
    _digest,
    _listed,
    _results,
    _claims,
    _outcomes,
    _expiry,
    _counts,
    _level,
    _evidence,
)
_RULES_OF_THIS_SUITE = (_suite, _checklist)


def _waivers(certificate: Certificate) -> tuple[list[Waiver], list[str]]:
    waivers, problems = [], []
    for number, row in enumerate(certificate["waivers"], 1):
        try:
            waivers.append(parse_waiver(row, f"waiver {number}"))
        except SettingError as error:  # noqa: PERF203 - each row has its own answer
            problems.append(error.message)
    return waivers, problems


def _ids(what: str, there: set[str], here: set[str]) -> Iterator[str]:
    for name in sorted(here - there):
        yield f"no {what} {name}"
    for name in sorted(there - here):
        yield f"{what} {name} does not exist in the checklist"


def _name(key: Any) -> str:
    check, view = key
    return f"{check}[{view}]" if view else str(check)
