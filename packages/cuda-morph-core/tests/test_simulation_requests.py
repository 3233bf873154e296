"""Requests such as ``sim:mychip``: who may simulate whom, and what is said when it cannot be."""

from __future__ import annotations

import subprocess
import sys

import pytest
from fake_distributions import FakeSite, source

from cuda_morph.errors import (
    BackendUnavailableError,
    MorphError,
    PluginError,
    SettingError,
    UnknownBackendError,
)
from cuda_morph.selection import check_request, select_backend

SIMULATE = """
@hookimpl
def cuda_morph_simulate(subject):
    {body}
    found = Detection(available={available}, device_count=3, reason={reason!r})
    return Simulation(detection=found, load=lambda: None)
"""
PERSONALITY = """
@hookimpl
def cuda_morph_personality():
    return {answer}
"""
ABSENT = "available=False, reason='no card answers'"


def add_simulator(
    site: FakeSite, name: str = "pose", *, available: bool = True, reason: str = "", body: str = ""
) -> None:
    extra = SIMULATE.format(available=available, reason=reason, body=body or "pass")
    site.add(name, source(name, extra=extra))


def add_subject(site: FakeSite, name: str, answer: str = "Personality(device_name='x')") -> None:
    site.add(name, source(name, detection=ABSENT, extra=PERSONALITY.format(answer=answer)))


@pytest.fixture
def site(fake_site: FakeSite) -> FakeSite:
    """Only fakes are visible: a simulator, two plugins with a personality and one without."""
    fake_site.only_fakes()
    add_simulator(fake_site)
    add_subject(fake_site, "card")
    add_subject(fake_site, "chip")
    fake_site.add("plain", source("plain"))
    return fake_site


def test_a_plugin_whose_card_is_missing_is_simulated(site: FakeSite) -> None:
    selection = select_backend("pose:card")
    assert (selection.plugin, selection.simulator) == ("card", "pose")
    assert selection.requested == "pose:card"
    assert selection.backend.name == "card"
    assert selection.backend.simulated
    assert selection.detection.device_count == 3
    assert "'pose' simulates it" in selection.reason
    with pytest.raises(BackendUnavailableError, match="no card answers"):
        select_backend("card")


def test_the_environment_asks_for_a_simulation(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_MORPH_BACKEND", " pose:chip ")
    assert select_backend().requested == "pose:chip"


def test_without_a_colon_nothing_is_simulated(site: FakeSite) -> None:
    selection = select_backend("pose")
    assert (selection.requested, selection.simulator, selection.simulation) == ("pose", None, None)
    assert not selection.backend.simulated


@pytest.mark.parametrize("call", [select_backend, check_request])
@pytest.mark.parametrize(
    ("request_", "error", "words"),
    [
        ("pose:other", UnknownBackendError, "'other'"),
        ("pose:", UnknownBackendError, "''"),
        ("pose:plain", SettingError, "'plain' has no personality"),
        ("pose:pose", SettingError, "'pose' has no personality"),
    ],
)
def test_what_can_be_simulated_is_listed(
    site: FakeSite, call, request_: str, error: type[MorphError], words: str
) -> None:
    with pytest.raises(error) as caught:
        call(request_)
    assert words in caught.value.message
    assert "pose:card, pose:chip." in caught.value.hint


@pytest.mark.parametrize("call", [select_backend, check_request])
@pytest.mark.parametrize(
    ("request_", "error", "words"),
    [
        ("plain:card", SettingError, "'plain' does not simulate"),
        ("cpu:card", SettingError, "'cpu' does not simulate"),
        ("cuda:0", SettingError, "does not simulate"),
        ("posse:card", UnknownBackendError, "'pose'"),
    ],
)
def test_what_cannot_simulate(
    site: FakeSite, call, request_: str, error: type[MorphError], words: str
) -> None:
    with pytest.raises(error, match=words):
        call(request_)


def test_a_personality_hook_may_decline(site: FakeSite) -> None:
    add_subject(site, "shy", answer="None")
    with pytest.raises(SettingError, match="'shy' has no personality"):
        check_request("pose:shy")


def test_broken_and_blocked_plugins_are_refused(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("faulty", "raise OSError('libchip')")
    with pytest.raises(PluginError, match="libchip"):
        check_request("pose:faulty")
    monkeypatch.setenv("CUDA_MORPH_BLOCK", "card")
    with pytest.raises(BackendUnavailableError, match="CUDA_MORPH_BLOCK"):
        select_backend("pose:card")


def test_a_simulator_says_why_it_cannot(site: FakeSite) -> None:
    add_simulator(site, "late", available=False, reason="the card is in use")
    with pytest.raises(BackendUnavailableError, match="the card is in use"):
        select_backend("late:card")
    check_request("late:card")  # names are right: the device is not asked for


def test_a_simulator_may_decline(site: FakeSite) -> None:
    add_simulator(site, "picky", body="return None")
    with pytest.raises(BackendUnavailableError, match="declines"):
        select_backend("picky:card")


def test_a_simulator_that_breaks_is_named(site: FakeSite) -> None:
    add_simulator(site, "wild", body="raise OSError('boom')")
    with pytest.raises(PluginError, match="boom"):
        select_backend("wild:card")


@pytest.mark.parametrize("request_", ["sim:xyz", "sim:cpu", "cpu:sim"])
def test_run_refuses_before_the_program_starts(request_: str) -> None:
    pytest.importorskip("cuda_morph_sim")
    command = [sys.executable, "-m", "cuda_morph", "run", "--backend", request_, "-c", "print(1)"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "next step" in done.stderr
    assert "Traceback" not in done.stderr
