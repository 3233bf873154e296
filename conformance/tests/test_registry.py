from __future__ import annotations

import re

import pytest

from cuda_morph.capabilities import CAPABILITIES
from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.registry import CHECKS, CheckFailed, check, require
from cuda_morph_conformance.vocabulary import CHECKLIST, Level

load_all()


@pytest.mark.parametrize("item", CHECKS.values(), ids=list(CHECKS))
def test_every_check_is_described(item):
    assert re.fullmatch(r"CM-[A-Z]{3,5}-\d{3}", item.id)
    assert item.must.count("MUST") >= 1
    assert item.fix
    assert set(item.requires) <= set(CAPABILITIES)
    assert tuple(map(int, item.since.split("."))) <= tuple(map(int, CHECKLIST.split(".")))


def test_checks_of_the_first_level_need_no_device():
    assert {item.devices for item in CHECKS.values() if item.level is Level.LOADS} == {0}


def test_ids_are_in_order_within_a_level():
    ids = [item.id for item in CHECKS.values() if item.level is Level.LOADS]
    assert ids == sorted(ids)


def test_levels_are_ranked():
    assert [level.value for level in sorted(Level, key=lambda level: level.rank)] == [
        "loads",
        "runs",
        "trains",
        "scales",
        "accelerates",
    ]


def documented(subject):
    """It MUST hold.

    Fix: make it hold.
    """


def without_must(subject):
    """It should hold.

    Fix: make it hold.
    """


def without_fix(subject):
    """It MUST hold."""


@pytest.mark.parametrize(
    ("identity", "function", "message"),
    [
        ("CM-TEST-001", without_must, "says MUST"),
        ("CM-TEST-001", without_fix, "Fix:"),
        ("CM-TEST-1", documented, "no check id"),
        ("CM-LOAD-001", documented, "already the id"),
    ],
)
def test_a_malformed_check_is_refused(identity, function, message):
    before = dict(CHECKS)
    with pytest.raises(ValueError, match=message):
        check(identity, level=Level.LOADS, since="0.1")(function)
    assert before == CHECKS


def test_require_raises_only_when_false():
    require(True, "unused")
    with pytest.raises(CheckFailed, match="seen"):
        require("", "seen")
