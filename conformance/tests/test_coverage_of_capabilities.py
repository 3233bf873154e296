"""Every capability that a plugin can claim is required by a check: a claim that nothing tests
would be worth nothing."""

from __future__ import annotations

import pytest

from cuda_morph.capabilities import CAPABILITIES, FAMILIES
from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.registry import CHECKS

load_all()
REQUIRED = {capability for check in CHECKS.values() for capability in check.requires}
UNFINISHED = ("load", "compile", "graph", "ext")
"""Families whose checks are still being written; this list only shrinks."""


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in UNFINISHED])
def test_every_capability_of_the_family_has_a_check(family: str) -> None:
    untested = {one.id for one in CAPABILITIES.values() if one.family == family} - REQUIRED
    assert not untested


def test_checks_require_only_what_can_be_claimed() -> None:
    assert not REQUIRED - CAPABILITIES.keys()
