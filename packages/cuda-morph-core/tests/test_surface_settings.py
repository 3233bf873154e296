"""Environment variables of CUDA programs, and ours that change what the surface says."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
import tier_cells

from cuda_morph.bridges import environment_map
from cuda_morph.builtin.cpu import BACKEND as CPU
from cuda_morph.patching import Journal
from cuda_morph.records import Backend, CollectiveBackend

TAG = """
import io, torch
seen = []
buffer = io.BytesIO()
torch.save(torch.ones(1, device="cuda:1"), buffer)
buffer.seek(0)
torch.load(buffer, map_location=lambda storage, tag: seen.append(tag) or storage)
print(seen[0])
"""
COUNT = "import os, torch; print(torch.cuda.device_count(), sorted(os.environ))"
CHILD = """
import os, subprocess, sys, torch
print(torch.cuda.device_count())
os.environ["CUDA_VISIBLE_DEVICES"] = "0,1,2"
print(subprocess.run([sys.executable, "-c", "import torch; print(torch.cuda.device_count())"],
    capture_output=True, text=True).stdout.strip())
"""


@pytest.fixture(autouse=True)
def need_the_simulated_device() -> None:
    if tier_cells.simulated():
        pytest.skip(f"no simulated device: {tier_cells.simulated()}")


def run(code: str, view: str = "cuda", **settings: str) -> str:
    """Runs code under the simulated device and returns what it printed."""
    known = ("CUDA_MORPH_SIM_CACHE",)
    kept = {k: v for k, v in os.environ.items() if "CUDA_" not in k or k in known}
    done = subprocess.run(
        [sys.executable, "-m", "cuda_morph", "run", "--backend", "sim", "--view", view, "-c", code],
        env=kept | settings | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_visible_devices_reach_the_backend() -> None:
    settings = {"CUDA_VISIBLE_DEVICES": "0", "CUDA_MORPH_SIM_DEVICES": "4"}
    assert run(COUNT, **settings).startswith("1 ")
    assert run(COUNT, **(settings | {"CUDA_VISIBLE_DEVICES": "3,0,9,1"})).startswith("2 ")


def test_the_backends_own_variable_wins() -> None:
    settings = {"CUDA_VISIBLE_DEVICES": "0", "CUDA_MORPH_SIM_VISIBLE_DEVICES": "0,1"}
    assert run(COUNT, **settings).startswith("2 ")


def test_a_child_with_its_own_visible_devices_sees_those() -> None:
    printed = run(CHILD, CUDA_VISIBLE_DEVICES="0", CUDA_MORPH_SIM_DEVICES="4")
    assert printed.split() == ["1", "3"]


def test_identifiers_of_nvidia_devices_are_not_handed_on() -> None:
    printed = run(COUNT, CUDA_VISIBLE_DEVICES="GPU-8932f937-d72c")
    assert printed.startswith("2 ")
    assert "CUDA_MORPH_SIM_VISIBLE_DEVICES" not in printed


def test_deactivation_takes_the_variables_back() -> None:
    code = (
        "import os, cuda_morph; cuda_morph.deactivate();"
        "print([k for k in os.environ if 'VISIBLE' in k or 'DERIVED' in k])"
    )
    assert run(code, CUDA_VISIBLE_DEVICES="0") == "['CUDA_VISIBLE_DEVICES']"


def test_saved_locations_are_portable_in_the_cuda_view() -> None:
    assert run(TAG) == "cuda:1"


def test_saved_locations_are_portable_on_request_in_the_native_view() -> None:
    assert run(TAG, view="native") == "sim:1"
    assert run(TAG, view="native", CUDA_MORPH_PORTABLE_CHECKPOINTS="1") == "cuda:1"


def test_a_cuda_version_is_claimed_on_request_only() -> None:
    code = "import torch; print(torch.version.cuda, torch.backends.cuda.is_built())"
    assert run(code) == "None True"
    assert run(code, CUDA_MORPH_CUDA_VERSION="12.4") == "12.4 True"
    assert run(code, view="native") == "None False"


def test_every_variable_is_handed_on_under_the_backends_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "PYTORCH_CUDA_ALLOC_CONF"):
        monkeypatch.setenv(name, "1")
    backend = Backend(
        name="chip",
        display_name="Chip",
        vendor="Chips",
        device_type="chip",
        adapter_module=None,
        visible_devices_env="CHIP_VISIBLE",
        launch_blocking_env="CHIP_BLOCKING",
        alloc_conf_env="CHIP_ALLOC",
    )
    journal = Journal()
    given = environment_map.apply(journal, backend, "sim")
    assert given == dict.fromkeys(("CHIP_VISIBLE", "CHIP_BLOCKING", "CHIP_ALLOC"), "1")
    assert os.environ["CHIP_ALLOC"] == "1"
    journal.rollback()
    assert "CHIP_ALLOC" not in os.environ


def test_defaults_are_set_unless_the_user_set_them(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = replace(CPU, env_defaults={"CHIP_WIDE": "true", "CHIP_LAZY": "0"})
    monkeypatch.setenv("CHIP_LAZY", "1")
    journal = Journal()
    assert environment_map.apply(journal, backend, "cpu") == {"CHIP_WIDE": "true"}
    assert (os.environ["CHIP_WIDE"], os.environ["CHIP_LAZY"]) == ("true", "1")
    journal.rollback()
    assert "CHIP_WIDE" not in os.environ


def test_collective_variables_are_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    record = CollectiveBackend(name="ccl", env_map={"NCCL_DEBUG": "CCL_DEBUG"})
    monkeypatch.setattr(environment_map, "collect", lambda *_a, **_k: [("chip", record)])
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    journal = Journal()
    assert environment_map.apply(journal, CPU, "chip") == {"CCL_DEBUG": "INFO"}
    journal.rollback()
