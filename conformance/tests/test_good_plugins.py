from __future__ import annotations

import pytest

from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.runner import all_keys, keys_of, run_checks, run_plugin
from cuda_morph_conformance.vocabulary import Evidence, Level, Outcome, Seen

load_all()
LOADS = [key for check in CHECKS.values() if check.level is Level.LOADS for key in keys_of(check)]


@pytest.fixture(scope="module")
def cpu_report():
    return run_plugin("cpu", keys=LOADS)


def seen(report):
    return {result.key: (result.seen, result.message) for result in report.results}


def test_the_built_in_cpu_plugin_reaches_the_first_level(cpu_report):
    assert seen(cpu_report) == dict.fromkeys(LOADS, (Seen.PASSED, ""))
    assert cpu_report.level is Level.LOADS
    assert cpu_report.clean
    assert not cpu_report.complete


LACKING = ("AMP-007", "ERR-001", "ERR-003", "IO-015", "IO-050", "MEM-022", "MEM-030", "GRPH-001")


def test_the_cpu_declines_what_it_lacks():
    report = run_plugin("cpu", keys=[(f"CM-{check}", "native") for check in LACKING])
    outcomes = {verdict.result.key[0]: verdict.outcome for verdict in report.verdicts}
    assert outcomes.pop("CM-ERR-001") is Outcome.PASSED
    assert outcomes.pop("CM-IO-050") is Outcome.PASSED
    assert set(outcomes.values()) <= {Outcome.UNSUPPORTED, Outcome.MISSING}  # safetensors


def test_no_evidence_is_claimed_where_no_device_was_used(cpu_report):
    assert cpu_report.evidence is Evidence.NONE


def test_facts_are_taken_from_the_plugin(cpu_report):
    facts = cpu_report.facts
    assert (facts.plugin, facts.dist, facts.activated) == ("cpu", "cuda-morph-core", "cpu")
    assert facts.backend["device_type"] == "cpu"
    assert not facts.simulated


def test_without_its_accelerator_a_plugin_only_loads_and_everything_else_is_missing(install):
    install()
    report = run_plugin("mychip")
    assert [result.key for result in report.results] == list(all_keys())
    found = seen(report)
    by_level = {level: set() for level in Level}
    for (name, _), (what, _) in found.items():
        by_level[CHECKS[name].level].add(what)
    assert by_level.pop(Level.LOADS) == {Seen.PASSED}  # its activation is refused as it should be
    assert {what for kinds in by_level.values() for what in kinds} == {Seen.ABSENT, Seen.SKIPPED}
    reasons = [message for what, message in found.values() if what is not Seen.PASSED]
    assert not [reason for reason in reasons if "No module named 'torch_mychip'" not in reason]
    assert report.level is Level.LOADS
    assert report.complete
    assert report.evidence is Evidence.NONE
    assert report.count(Outcome.MISSING) > report.count(Outcome.PASSED) > 10
    assert (report.facts.dist, report.facts.version) == ("cuda-morph-mychip", "1.0")


def test_checks_run_active_in_both_views():
    [device, *_] = [check for check in CHECKS.values() if check.active and len(check.views) == 2]
    native, cuda = run_checks("sim", [device.id])
    assert (native.view, cuda.view) == ("native", "cuda")
    assert (native.seen, cuda.seen) == (Seen.PASSED, Seen.PASSED), (native, cuda)


def test_settings_of_the_user_do_not_reach_the_checks(install, monkeypatch):
    install()
    monkeypatch.setenv("CUDA_MORPH_BLOCK", "mychip")
    monkeypatch.setenv("CUDA_MORPH_VIEW", "nonsense")
    [result] = run_checks("mychip", ["CM-LOAD-006"])
    assert result.seen is Seen.PASSED
