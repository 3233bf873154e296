"""The table of outcomes and the levels, cell by cell."""

from __future__ import annotations

import pytest

from cuda_morph.capabilities import CAPABILITIES
from cuda_morph.records import Support
from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.outcomes import (
    MANDATORY,
    STRENGTH,
    holds,
    is_mandatory,
    judge,
    reached,
    weakest,
)
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.vocabulary import Level, Outcome, Seen

load_all()
F, P, E = Support.FULL, Support.PARTIAL, Support.EMULATED
U, N, X = Support.UNKNOWN, Support.NOT_YET, Support.NEVER

TABLE = [
    *[((Seen.PASSED, claim), Outcome.PASSED) for claim in (F, P, E, U)],
    *[((Seen.PASSED, claim), Outcome.UNDERDECLARED) for claim in (N, X)],
    *[((Seen.FAILED, claim), Outcome.FAILED) for claim in (F, P, E, U)],
    *[((Seen.FAILED, claim), Outcome.UNSUPPORTED) for claim in (N, X)],
    *[((Seen.SKIPPED, claim), Outcome.MISSING) for claim in (F, P, E, U)],
    *[((Seen.SKIPPED, claim), Outcome.UNSUPPORTED) for claim in (N, X)],
    *[((Seen.ABSENT, claim), Outcome.MISSING) for claim in Support],
]


@pytest.mark.parametrize(("given", "expected"), TABLE)
def test_the_table(given, expected):
    assert judge(*given) is expected


def test_the_table_is_whole():
    assert len({given for given, _ in TABLE}) == len(Seen) * len(Support)


@pytest.mark.parametrize("claim", Support)
def test_a_waiver_covers_what_failed_and_never_what_did_not_run(claim):
    assert judge(Seen.FAILED, claim, waived=True) is Outcome.WAIVED
    assert judge(Seen.SKIPPED, claim, waived=True) is Outcome.WAIVED
    assert judge(Seen.ABSENT, claim, waived=True) is Outcome.MISSING


def test_several_requirements_take_the_weakest_claim():
    claims = {"stream.create": F, "stream.wait": N, "event.wait": E}
    assert weakest(claims, ["stream.create"]) is F
    assert weakest(claims, ["stream.create", "event.wait"]) is E
    assert weakest(claims, ["stream.create", "stream.wait"]) is N
    assert weakest(claims, ["stream.create", "rng.seed"]) is U
    assert weakest({}, []) is F
    assert set(STRENGTH) == set(Support)


def test_mandatory_abilities_exist_and_belong_to_one_level():
    ids = [name for names in MANDATORY.values() for name in names]
    assert set(ids) <= set(CAPABILITIES)
    assert len(ids) == len(set(ids))


def test_nothing_of_the_first_level_can_be_declined():
    for check in CHECKS.values():
        assert check.level is not Level.LOADS or is_mandatory(check.requires), check.id


def test_only_a_check_of_nothing_but_mandatory_abilities_is_mandatory():
    assert is_mandatory(["device.count"])
    assert not is_mandatory(["device.utilization"])
    assert not is_mandatory(["device.count", "device.utilization"])
    assert is_mandatory([])


@pytest.mark.parametrize(
    ("outcome", "ordinary", "mandatory"),
    [
        (Outcome.PASSED, True, True),
        (Outcome.UNDERDECLARED, True, True),
        (Outcome.WAIVED, True, True),
        (Outcome.UNSUPPORTED, True, False),
        (Outcome.FAILED, False, False),
        (Outcome.MISSING, False, False),
    ],
)
def test_what_keeps_from_a_level(outcome, ordinary, mandatory):
    assert holds(outcome, mandatory=False) is ordinary
    assert holds(outcome, mandatory=True) is mandatory


def test_a_level_needs_all_levels_below_it():
    everything = [(level, True) for level in Level]
    assert reached(everything) is Level.ACCELERATES
    assert reached([*everything, (Level.RUNS, False)]) is Level.LOADS
    assert reached([*everything, (Level.LOADS, False)]) is None
    assert reached([(Level.LOADS, True), (Level.TRAINS, True)]) is Level.LOADS
    assert reached([]) is None
