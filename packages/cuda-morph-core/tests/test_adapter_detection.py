"""Versions and refusals of `cuda_morph.adapter_detection`; what a whole detection does is tested
with every vendor's plugin in the repository's ``tests/test_vendor_detection.py``."""

import pytest

from cuda_morph.adapter_detection import Obstacle, distribution_version, refusal, version_fits


@pytest.mark.parametrize(
    ("required", "installed", "fits"),
    [
        ("2.13", "2.13.0", True),
        ("2.13", "2.13.0+cpu", True),
        ("2.13", "2.1.3", False),
        ("2.1", "2.13.0", False),
        ("2.13.0", "2.13.1", False),
        (">=2.7.1", "2.7.1+metax", True),
        (">=2.7.1", "2.10.0", True),
        (">=2.7.1", "2.7.0", False),
        (">=2.7.1", "2.9.0a0", True),
    ],
)
def test_versions_are_compared_part_by_part(required, installed, fits):
    assert version_fits(required, installed) is fits


def test_a_refusal_carries_problem_and_advice():
    found = refusal(Obstacle.NO_DEVICE, "None.", "Add one.", {"torch": "2.13.0", "adapter": ""})
    assert not found.available
    assert found.details == {"torch": "2.13.0", "problem": "no_device", "advice": "Add one."}


def test_versions_of_distributions_are_read():
    assert distribution_version("pytest")
    assert distribution_version("torch_mychip") is None
