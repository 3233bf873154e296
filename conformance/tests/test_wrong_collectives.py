"""Damaged collectives must fail the checks of their sentences, and the right ones no check."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.runner import run_checks
from cuda_morph_conformance.vocabulary import Seen

pytestmark = pytest.mark.long

pytest.importorskip("torch")
pytest.importorskip("cuda_morph_sim")

load_all()
WRONG = Path(__file__).with_name("wrong_collectives.py").read_text()
AREAS = ("CM-DIST", "CM-DDP", "CM-FSDP")
SLOW = "CM-DIST-030"  # starts a program of its own

INTENDED = {
    "CM-DIST-006": "broadcast from rank 1",
    "CM-DIST-009": "MAX",
    "CM-DIST-010": "sum on rank 1",
    "CM-DIST-011": "part of rank 0",
    "CM-DIST-012": "all parts",
    "CM-DIST-013": "sum of the parts",
    "CM-DIST-016": "part from rank 0",
    "CM-DIST-018": "part of rank 1",
    "CM-DIST-019": "from rank 0",
    "CM-DIST-021": "it let go after",
    "CM-DIST-022": "gather_object",
}
"""The check that each damage is found by, and what it says."""

CONSEQUENCES = {"CM-DIST-025", "CM-FSDP-010", "CM-FSDP-009", "CM-DDP-008"}
"""Checks of coalescing, of stages, and of two parts of PyTorch that broadcast from rank 1: they use
the damaged functions too."""


def run(name, ids):
    results = run_checks(name, [(one, "native") for one in ids])
    return {result.key[0]: result for result in results}


@pytest.fixture
def two_devices(monkeypatch):
    monkeypatch.setenv("CUDA_MORPH_SIM_DEVICES", "2")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def test_each_damage_is_found_by_its_check(install, two_devices):
    install(WRONG)
    ids = [one for one in CHECKS if one.startswith(AREAS) and one != SLOW]
    found = run("mychip", ids)
    for name, mention in INTENDED.items():
        assert found[name].seen is Seen.FAILED, found[name]
        assert mention in found[name].message
    failed = {name for name, result in found.items() if result.seen is not Seen.PASSED}
    assert failed - set(INTENDED) <= CONSEQUENCES, {name: found[name] for name in failed}


def test_a_group_that_leaves_the_other_rank_out(install, two_devices):
    alone = """
    from cuda_morph_sim.loader import load, native_module
    load("sim")
    import torch.distributed as dist

    def create(store, rank, size, timeout):
        host = dist.ProcessGroupGloo(store, 0, 1, timeout=timeout)
        return native_module().make_process_group(host, "simccl", (), (), (), ())

    dist.Backend.register_backend("simccl", create, devices=["sim"])
"""
    head, _, _ = WRONG.partition("def start():")
    install(head + "def start():" + alone)
    ids = ["CM-DIST-001", "CM-DIST-007", "CM-DIST-014", "CM-DDP-001", "CM-DDP-004", "CM-FSDP-001"]
    found = run("mychip", ids)
    assert {name for name, one in found.items() if one.seen is Seen.FAILED} == set(ids)


def test_the_simulated_device_passes_all(two_devices):
    ids = [one for one in CHECKS if one.startswith(AREAS)]
    results = run_checks("sim", [(one, view) for one in ids for view in CHECKS[one].views])
    assert not [result for result in results if result.seen is not Seen.PASSED]
