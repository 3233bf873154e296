from __future__ import annotations

import pytest

from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.runner import run_checks, run_plugin
from cuda_morph_conformance.vocabulary import Level, Outcome


@pytest.fixture(scope="module")
def cpu_report():
    return run_plugin("cpu")


def outcomes(report):
    return {result.id: (result.outcome, result.message) for result in report.results}


def test_the_built_in_cpu_plugin_reaches_the_first_level(cpu_report):
    assert outcomes(cpu_report) == dict.fromkeys(CHECKS, (Outcome.PASSED, ""))
    assert cpu_report.level is Level.LOADS
    assert cpu_report.clean


def test_no_evidence_is_claimed_where_no_device_was_used(cpu_report):
    assert cpu_report.evidence is None
    assert cpu_report.as_dict()["evidence"] is None


def test_without_its_accelerator_a_plugin_reaches_no_level(install):
    install()
    report = run_plugin("mychip")
    found = outcomes(report)
    assert not [check_id for check_id, (what, _) in found.items() if what is Outcome.FAILED]
    absent = {check_id for check_id, (what, _) in found.items() if what is Outcome.MISSING}
    assert absent == {"CM-LOAD-050", "CM-LOAD-051", "CM-LOAD-052"}
    assert "No module named 'torch_mychip'" in found["CM-LOAD-050"][1]
    assert report.level is None
    assert not report.clean
    identity = report.as_dict()["plugin"]
    assert (identity["dist"], identity["version"]) == ("cuda-morph-mychip", "1.0")


def test_settings_of_the_user_do_not_reach_the_checks(install, monkeypatch):
    install()
    monkeypatch.setenv("CUDA_MORPH_BLOCK", "mychip")
    monkeypatch.setenv("CUDA_MORPH_VIEW", "nonsense")
    [result] = run_checks("mychip", ["CM-LOAD-006"])
    assert result.outcome is Outcome.PASSED
