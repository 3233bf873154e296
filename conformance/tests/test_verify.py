"""A certificate that was damaged, forged or made elsewhere: `verify` names what does not add up."""

from __future__ import annotations

import copy
import datetime as dt
import json
import subprocess
import sys

import pytest
from made_certificate import make, sealed

from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.verify import find_problems
from cuda_morph_conformance.vocabulary import Level, Seen
from cuda_morph_conformance.waivers import Waiver

FAILING = next(check for check in CHECKS.values() if check.level is Level.RUNS)
WAIVER = Waiver(
    check=FAILING.id,
    plugin="mychip",
    reason="Known.",
    issue="https://example.org/1",
    expires="2099-01-01",
)
ROW = len([check for check in CHECKS.values() if check.level is Level.LOADS])
"""Position of the first result above the first level."""


@pytest.fixture(scope="module")
def honest():
    return make(seen={FAILING.id: Seen.FAILED}, waivers=())


@pytest.fixture
def certificate(honest):
    return copy.deepcopy(honest)


def test_an_honest_one_adds_up(certificate):
    assert find_problems(certificate) == []


def test_any_change_without_a_new_digest_is_seen(certificate):
    certificate["environment"]["python"] = "4.0"
    assert find_problems(certificate) == [
        "its content was changed after it was written: sha256 is not that of the content"
    ]


def _fail_to_pass(one):
    one["results"][ROW].update(outcome="passed")


def _drop_result(one):
    del one["results"][-1]


def _drop_check(one):
    gone = one["checks"].pop()["id"]
    one["results"] = [row for row in one["results"] if row["id"] != gone]


def _double(one):
    one["results"].append(one["results"][0])


def _soften(one):
    one["checks"][0]["must"] = "It MUST be nice."


def _other_source(one):
    one["checks"][0]["sha256"] = "0" * 64


def _raise_level(one):
    one["level"] = "accelerates"


def _count(one):
    one["counts"]["failed"] = 0


def _harden(one):
    one["evidence"] = "hardware"


def _decline(one):
    one["results"][0]["mandatory"] = False


def _claim(one):
    one["claims"]["device.antigravity"] = {"support": "full", "note": "", "since": ""}


def _weaken(one):
    for claim in one["claims"].values():
        claim["support"] = "never"


def _old_checklist(one):
    one["checklist"]["version"] = "0.9"


def _new_suite(one):
    one["suite"]["version"] = "99.0"


def _patched_suite(one):
    one["suite"]["modified"] = ["cuda_morph_conformance/outcomes.py"]


def _bad_waiver(one):
    one["waivers"] = [{**vars_of(WAIVER), "reason": ""}]


def vars_of(waiver):
    return {name: getattr(waiver, name) for name in waiver.__slots__}


@pytest.mark.parametrize(
    ("forge", "mention"),
    [
        (_fail_to_pass, f"{FAILING.id}[native]: failed counts as failed, not passed"),
        (_drop_result, "no result"),
        (_drop_check, "no check"),
        (_double, "has 2 results"),
        (_soften, "described otherwise"),
        (_other_source, "sha256 is not that of the checks"),
        (_other_source, "its source differs"),
        (_raise_level, "its level is accelerates; the results give loads"),
        (_count, "it counts 0 failed; there are"),
        (_harden, "its evidence is hardware; the recorded facts give simulated"),
        (_decline, "mandatory is True, not False"),
        (_claim, "unknown capabilities: device.antigravity"),
        (_weaken, "the claim is never, not full"),
        (_old_checklist, "its checklist is 0.9; this suite has 1.0"),
        (_new_suite, "made by suite 99.0"),
        (_patched_suite, "had been changed: cuda_morph_conformance/outcomes.py"),
        (_bad_waiver, "reason is not given"),
    ],
)
def test_a_careful_forgery_is_named(forge, mention, certificate):
    forge(certificate)
    problems = find_problems(sealed(certificate))
    assert any(mention in problem for problem in problems), problems


def test_waivers_that_expired_since_are_named():
    certificate = make(seen={FAILING.id: Seen.FAILED}, waivers=(WAIVER,))
    assert find_problems(certificate) == []
    [problem] = find_problems(certificate, today=dt.date(2099, 1, 2))
    assert problem == f"the waiver of {FAILING.id} expired on 2099-01-01"


def test_an_older_checklist_may_still_be_judged_by_itself(certificate):
    gone = certificate["checks"].pop()["id"]
    certificate["results"] = [row for row in certificate["results"] if row["id"] != gone]
    assert any(gone in problem for problem in find_problems(sealed(certificate)))
    alone = find_problems(sealed(certificate), alone=True)
    assert not any(gone in problem for problem in alone)


def test_many_problems_of_one_kind_are_counted(certificate):
    certificate["results"] = certificate["results"][:1]
    problems = find_problems(sealed(certificate))
    assert any(problem.startswith("... and") for problem in problems)
    assert len(problems) < 60


def verify(path):
    command = [sys.executable, "-m", "cuda_morph_conformance", "verify", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("text", "code", "mention"),
    [
        ("", 2, "no whole certificate"),
        ("{", 2, "may have been cut off"),
        ("[1]", 2, "no JSON object"),
        ("\x00\x01", 2, "no whole certificate"),
        ("{}", 1, "its format is None"),
        ('{"format": 7}', 1, "reads format 1"),
        ('{"format": 1}', 1, "is a required property"),
        ("[" * 100_000, 2, "no whole certificate"),
    ],
)
def test_what_is_no_certificate_is_said_without_a_traceback(text, code, mention, tmp_path):
    path = tmp_path / "certificate.json"
    path.write_text(text)
    done = verify(path)
    assert done.returncode == code
    assert mention in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_truncated_and_whole_files(honest, tmp_path):
    text = json.dumps(honest)
    path = tmp_path / "certificate.json"
    path.write_text(text[: len(text) // 2])
    assert verify(path).returncode == 2
    path.write_text(text)
    done = verify(tmp_path)
    assert done.returncode == 0, done.stdout
    assert "it adds up" in done.stdout
    assert verify(tmp_path / "none.json").returncode == 2


@pytest.mark.parametrize("field", ["results", "checks", "claims", "suite", "counts", "facts"])
@pytest.mark.parametrize("value", [None, 3, "text", [], {}, [[]], {"a": {}}])
def test_fields_of_other_types_are_problems_not_errors(field, value, certificate):
    certificate[field] = value
    assert find_problems(sealed(certificate))
