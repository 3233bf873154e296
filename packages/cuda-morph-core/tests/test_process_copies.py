"""Tensors that one process sends to another with torch.multiprocessing."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import tier_cells

PROGRAM = Path(__file__).with_name("process_programs") / "copies.py"
NOTICE = "The receiver gets a copy"
REFUSED = "A parameter that is being trained cannot be shared with another process"
COMPUTED = "The gradient of a computed tensor cannot reach back into the process that computed it"
RECEIVER = """
import pickle, sys, torch
pickle.loads(sys.stdin.buffer.read())
"""
SENDER = """
import io, sys, torch
from multiprocessing.reduction import ForkingPickler
import cuda_morph
before = dict(ForkingPickler._extra_reducers)
with cuda_morph.activate("sim"):
    data = bytes(ForkingPickler.dumps(torch.ones(2, device="cuda")))
assert ForkingPickler._extra_reducers == before
sys.stdout.buffer.write(data)
"""


@pytest.fixture(autouse=True)
def need_the_simulated_device() -> None:
    if tier_cells.simulated():
        pytest.skip(f"no simulated device: {tier_cells.simulated()}")


def environment(**settings: str) -> dict[str, str]:
    known = ("CUDA_MORPH_SIM_CACHE",)
    kept = {name: text for name, text in os.environ.items() if "CUDA_" not in name or name in known}
    return kept | {"OMP_NUM_THREADS": "1"} | settings


@pytest.mark.parametrize(
    ("tier", "view"),
    [
        ("T0", "cuda"),
        ("T0", "native"),
        pytest.param("T1", "cuda", marks=pytest.mark.long),
        pytest.param("T3", "native", marks=pytest.mark.long),
    ],
)
def test_the_receiver_gets_a_copy_and_both_are_told(tier: str, view: str) -> None:
    run = [sys.executable, "-m", "cuda_morph", "run", "--backend", "sim", "--view", view]
    done = subprocess.run(
        [*run, str(PROGRAM)],
        env=environment(CUDA_MORPH_TIER=tier),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    device = "cuda" if view == "cuda" else "sim"
    assert done.stdout.splitlines() == [
        f"Tensor {device}:0 False [1.0, 1.0, 1.0]",
        f"Tensor {device}:1 True [[0.0, 2.0], [1.0, 3.0]]",
        f"Parameter {device}:0 False [1.0, 1.0]",
        f"Tensor {device}:0 False [[1.0, 0.0], [0.0, 1.0]]",
        "Tensor cpu False [1.0, 1.0]",
        "the sender's values: [1.0, 1.0, 1.0] [7.0, 7.0]",  # memory of the CPU stays shared
        f"RefusedError [CM-E07] {REFUSED}",
        f"RuntimeError {COMPUTED}",
        "frozen weights arrived",
    ]
    assert done.stderr.count(NOTICE) == 2, done.stderr  # one in each process that sends


def python(code: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment(),
        input=data,
        capture_output=True,
        timeout=120,
        check=False,
    )


def test_a_receiver_without_the_device_is_told_what_to_do() -> None:
    sent = python(SENDER)
    assert sent.returncode == 0, sent.stderr.decode()
    assert pickle.PROTO in sent.stdout
    received = python(RECEIVER, sent.stdout)
    assert received.returncode == 1
    message = received.stderr.decode()
    assert "BackendUnavailableError: [CM-E" in message
    assert "arrived in a process without such a device" in message
    assert "activate in the receiver too" in message
