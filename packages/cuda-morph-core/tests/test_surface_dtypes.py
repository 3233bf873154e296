"""Dtypes that a device lacks: substituted with one visible notice, or refused, by policy."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import tier_cells

# The simulated device has every dtype; its plugin is made to say otherwise before activation.
LACKING = """
import sys, warnings
import torch
import cuda_morph
from cuda_morph.records import DtypeSupport, Support
from cuda_morph_sim import claims
claims.DTYPES = (DtypeSupport(dtype="float64", support=Support.NEVER, substitute="float32"),)
before = torch.zeros(1)
activation = cuda_morph.activate("sim", view=sys.argv[1])
"""
SUBSTITUTE = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    made = [
        torch.zeros(2, dtype=torch.float64, device="cuda"),
        torch.ones(2, dtype=torch.float64).cuda(),
        torch.ones(2, dtype=torch.float64).to("cuda"),
        torch.ones(2, device="cuda").double(),
        torch.tensor([1.0, 2.0], dtype=torch.float64, device="cuda"),
        torch.nn.Linear(2, 2).double().cuda().weight,
    ]
    torch.set_default_dtype(torch.float64)
    made.append(torch.zeros(2, device="cuda"))
    torch.set_default_dtype(torch.float32)
assert {tensor.dtype for tensor in made} == {torch.float32}, made
notices = [str(item.message) for item in caught if "float64" in str(item.message)]
assert len(notices) == 1 and "torch.float32 instead" in notices[0], notices
assert torch.zeros(2, dtype=torch.float64).dtype == torch.float64
assert torch.ones(2, dtype=torch.int64, device="cuda").dtype == torch.int64
weight = torch.ones(2, dtype=torch.float64, requires_grad=True)
(weight.cuda() * 2).sum().backward()
assert (weight.grad.dtype, weight.grad.tolist()) == (torch.float64, [2, 2])
cuda_morph.deactivate()
claims.DTYPES = ()
with cuda_morph.activate("sim", view=sys.argv[1]):
    assert torch.zeros(2, dtype=torch.float64, device="cuda").dtype == torch.float64
"""
REFUSE = """
try:
    torch.zeros(2, dtype=torch.float64, device="cuda")
except cuda_morph.errors.RefusedError as error:
    text = str(error)
    assert "CM-E07" in text and "torch.float64" in text and "torch.float32" in text, text
else:
    raise AssertionError("float64 was made")
assert torch.zeros(2, device="cuda").dtype == torch.float32
"""


@pytest.mark.parametrize("view", ["cuda", "native"])
@pytest.mark.parametrize(("policy", "code"), [("substitute", SUBSTITUTE), ("refuse", REFUSE)])
def test_policy(policy: str, code: str, view: str) -> None:
    if tier_cells.simulated():
        pytest.skip(f"no simulated device: {tier_cells.simulated()}")
    done = subprocess.run(
        [sys.executable, "-c", LACKING + code, view],
        env=os.environ | {"CUDA_MORPH_DTYPES": policy, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
