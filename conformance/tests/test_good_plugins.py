from __future__ import annotations

import pytest

from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.runner import run_plugin
from cuda_morph_conformance.vocabulary import Level, Outcome


def outcomes(report):
    return {result.id: (result.outcome, result.message) for result in report.results}


def test_the_built_in_cpu_plugin_reaches_the_first_level():
    pytest.importorskip("torch", reason="the activation checks need PyTorch")
    report = run_plugin("cpu")
    assert outcomes(report) == dict.fromkeys(CHECKS, (Outcome.PASSED, ""))
    assert report.level is Level.LOADS
    assert report.clean


def test_no_evidence_is_claimed_where_no_device_was_used():
    report = run_plugin("cpu")
    assert report.evidence is None
    assert report.as_dict()["evidence"] is None


def test_without_its_accelerator_a_plugin_reaches_no_level(install):
    install()
    report = run_plugin("mychip")
    found = outcomes(report)
    assert not [check_id for check_id, (what, _) in found.items() if what is Outcome.FAILED]
    absent = {check_id for check_id, (what, _) in found.items() if what is Outcome.MISSING}
    assert absent == {"CM-LOAD-050", "CM-LOAD-051", "CM-LOAD-052"}
    assert "cannot be loaded" in found["CM-LOAD-050"][1] or "torch" in found["CM-LOAD-050"][1]
    assert report.level is None
    assert not report.clean


def test_settings_of_the_user_do_not_reach_the_checks(install, monkeypatch):
    install()
    monkeypatch.setenv("CUDA_MORPH_BLOCK", "mychip")
    monkeypatch.setenv("CUDA_MORPH_VIEW", "nonsense")
    report = run_plugin("mychip")
    assert outcomes(report)["CM-LOAD-006"] == (Outcome.PASSED, "")


def test_the_report_names_the_distribution(install):
    install()
    identity = run_plugin("mychip").as_dict()["plugin"]
    assert (identity["plugin"], identity["dist"]) == ("mychip", "cuda-morph-mychip")
    assert identity["version"] == "1.0"
