"""Every capability that a plugin can claim is required by a check: a claim that nothing tests
would be worth nothing."""

from __future__ import annotations

import pytest

from cuda_morph.capabilities import CAPABILITIES, FAMILIES
from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.registry import CHECKS

load_all()
REQUIRED = {capability for check in CHECKS.values() for capability in check.requires}
EVERY_PLUGIN = {
    "load.detection",
    "load.discovery",
    "load.install",
    "load.isolation",
    "load.static_claims",
}
"""What no plugin can decline: the checks of it require nothing, so that they count for all."""


@pytest.mark.parametrize("family", FAMILIES)
def test_every_capability_of_the_family_has_a_check(family: str) -> None:
    claimed = {one.id for one in CAPABILITIES.values() if one.family == family}
    assert claimed - REQUIRED - EVERY_PLUGIN == set()


def test_exceptions_are_needed() -> None:
    assert not EVERY_PLUGIN & REQUIRED


def test_checks_require_only_what_can_be_claimed() -> None:
    assert not REQUIRED - CAPABILITIES.keys()
