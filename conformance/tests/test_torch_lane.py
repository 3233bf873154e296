"""The optional lane over PyTorch's operator database, on one operator of it."""

from __future__ import annotations

import pytest

pytest.importorskip("expecttest")

from made_certificate import make_report

from cuda_morph_conformance import torch_lane
from cuda_morph_conformance.certificate import make_certificate, schema
from cuda_morph_conformance.verify import find_problems


@pytest.mark.long
@pytest.mark.timeout(1000)
def test_the_simulated_device_agrees_with_the_cpu():
    lane = torch_lane.run_lane("sim")
    assert lane["ending"] == ""
    assert lane["passed"] > 1000
    assert lane["first_failures"] == []
    certificate = make_certificate(make_report(), torch_suite=lane)
    assert find_problems(certificate) == []


def test_a_lane_that_cannot_start_counts_nothing_and_says_why(install):
    install()
    lane = torch_lane.run_lane("mychip")
    assert (lane["passed"], lane["failed"], lane["skipped"]) == (0, 0, 0)
    assert "cannot be used here" in lane["ending"]
    assert set(schema()["properties"]["torch_suite"]["required"]) <= set(lane)


def test_a_lane_that_takes_too_long_is_ended(install, monkeypatch):
    monkeypatch.setattr(torch_lane, "LIMIT", 0.5)
    assert "did not end within 0.5 s" in torch_lane.run_lane("sim")["ending"]
