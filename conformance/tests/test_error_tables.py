"""CM-LOAD-042: one meaning for each code of a family, whatever other families do."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.runner import run_checks
from cuda_morph_conformance.vocabulary import Seen

load_all()
GOOD = Path(__file__).with_name("good_plugin.py").read_text()
HOOK = """
from cuda_morph import records
from cuda_morph.hookspecs import hookimpl

@hookimpl
def cuda_morph_error_codes():
    for code, name, family, semantic in {rows}:
        yield records.ErrorCode(code=code, name=name, meaning="it failed", family=family,
                                semantic=semantic)
"""
FULL = ("2", "mcNoMemory", "runtime", "out_of_memory")


@pytest.mark.parametrize(
    ("second", "mention"),
    [
        (FULL, "listed twice: runtime 2 mcNoMemory"),
        (("2", "mcInvalid", "runtime", "invalid_argument"), "of several classes: runtime 2"),
        (("2", "mcOutOfMemory", "runtime", "out_of_memory"), ""),
        (("2", "MCL_RING", "collectives", "collective_system"), ""),
    ],
)
def test_codes_are_judged_within_their_family(second, mention, install):
    install(GOOD + HOOK.format(rows=[FULL, second]))
    [result] = run_checks("mychip", ["CM-LOAD-042"])
    assert result.seen is (Seen.FAILED if mention else Seen.PASSED), result
    assert mention in result.message
