from __future__ import annotations

import re
import subprocess
import sys

import pytest

from cuda_morph.capabilities import CAPABILITIES
from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.registry import CHECKS, CheckFailed, check, require
from cuda_morph_conformance.vocabulary import CHECKLIST, VIEWS, Level

load_all()


@pytest.mark.parametrize("item", CHECKS.values(), ids=list(CHECKS))
def test_every_check_is_described(item):
    assert re.fullmatch(r"CM-[A-Z]{2,5}-\d{3}", item.id)
    assert item.must.count("MUST") >= 1
    assert item.fix
    assert set(item.requires) <= set(CAPABILITIES)
    assert tuple(map(int, item.since.split("."))) <= tuple(map(int, CHECKLIST.split(".")))


def test_checks_of_the_first_level_need_no_device():
    assert {item.devices for item in CHECKS.values() if item.level is Level.LOADS} == {0}


def test_the_order_is_by_level_area_and_number():
    assert list(CHECKS.values()) == sorted(CHECKS.values(), key=lambda item: item.order)
    ids = [item.id for item in CHECKS.values() if item.level is Level.LOADS]
    assert ids == sorted(ids)


def test_listing_imports_no_torch():
    code = (
        "import sys; from cuda_morph_conformance.checks import load_all; load_all(); "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_views_default_to_both_above_the_first_level():
    for item in CHECKS.values():
        assert set(item.views) <= set(VIEWS)
        if item.level is Level.LOADS:
            assert item.views == ()


def test_unknown_views_are_refused():
    with pytest.raises(ValueError, match="views are"):
        check("CM-DEV-900", level=Level.RUNS, since="1.0", views=("other",))(documented)


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
        ("CM-DEV-900", without_must, "says MUST"),
        ("CM-DEV-900", without_fix, "Fix:"),
        ("CM-DEV-1", documented, "no check id"),
        ("CM-NONE-001", documented, "no area"),
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
