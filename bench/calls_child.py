"""Measured process of the families ``bystanders``, ``redirected`` and ``sim``.

Usage: python calls_child.py BACKEND TIER VIEW ROUNDS FAMILY...; the last line is JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import torch  # noqa: TID253 - the measured process works with it
from blocks import Bench, Case, measure
from rows import RATIO_OF_BYSTANDERS, Budget

import cuda_morph

BYSTANDERS = {
    "torch.empty(2)": "torch.empty(2)",
    "c + c": "c + c",
    "c.to(dtype)": "c.to(float64)",
    'c.to("cpu")': 'c.to("cpu")',
    'torch.device("cpu")': 'torch.device("cpu")',
    "c.shape": "c.shape",
    "c.dtype": "c.dtype",
    "c.device": "c.device",
    "isinstance(device)": "isinstance(device, torch.device)",
    "MLP training step": "step()",
}
"""Calls that have nothing to do with CUDA and must not notice."""


def bystanders() -> tuple[list[Case], dict[str, Any]]:
    """Returns calls that cuda-morph must leave alone."""
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch = torch.randn(16, 32)

    def step() -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    cases = [
        Case(name=name, native=code, active=code, budget=RATIO_OF_BYSTANDERS)
        for name, code in BYSTANDERS.items()
    ]
    names = {"c": torch.randn(4), "device": torch.device("cpu"), "float64": torch.float64}
    return cases, {**names, "step": step}


def redirected(backend: str, tier: str) -> tuple[list[Case], dict[str, Any]]:
    """Returns CUDA calls and what the backend's own user would write."""
    own = torch.device(backend)
    compiled = tier == "T0"
    # T1 has no cache of devices, and its method and attribute are Python functions.
    cuda = Budget(kind="ratio", limit=1.02 if compiled else 1.4)
    string = Budget(kind="ratio", limit=1.02 if compiled else 1.1)
    flag = Budget(kind="ratio", limit=1.5) if compiled else Budget(kind="none")
    pairs = (
        ("torch.device('cuda')", f"torch.device('{backend}')", string),
        ("torch.device('cuda:0')", f"torch.device('{backend}:0')", string),
        ("torch.empty(2, device='cuda')", f"torch.empty(2, device='{backend}')", string),
        ("x.to('cuda')", f"x.to('{backend}')", string),
        ("x.cuda()", "x.to(own)", cuda),
        ("x.is_cuda", "x.is_cuda", flag),
    )
    cases = [
        Case(name=active, native=native, active=active, budget=budget)
        for active, native, budget in pairs
    ]
    return cases, {"x": torch.empty(2, device=own), "own": own}


def answered(backend: str) -> tuple[list[Case], dict[str, Any]]:
    """Returns hot functions of torch.cuda and what their exchanged code calls; while active."""
    names = ["synchronize", "current_device", "current_stream", "device_count"]
    if backend != "cpu":  # the CPU's figure is read from a file, which takes 20 us
        names.append("memory_allocated")
    targets = {name: vars(_home(name))[f"_cuda_morph_{name}"] for name in names}
    budget = Budget(kind="extra", limit=50)
    cases = [
        Case(name=f"torch.cuda.{name}()", native=f"{name}()", active=f"{name}()", budget=budget)
        for name in names
    ]
    return cases, {"targets": targets, **targets}


def _home(name: str) -> Any:
    """Returns the module that defines a function of torch.cuda."""
    return sys.modules[getattr(torch.cuda, name).__module__]


def sim() -> tuple[list[Case], dict[str, Any]]:
    """Returns operators on the simulated device and on the CPU."""
    budget = Budget(kind="extra", limit=600)
    pairs = {
        "add": ("a + b", "x + y"),
        "add_": ("a.add_(b)", "x.add_(y)"),
        "relu": ("a.relu()", "x.relu()"),
        "mm 16x16": ("a.mm(b)", "x.mm(y)"),
    }
    cases = [
        Case(name=name, native=cpu, active=own, budget=budget) for name, (cpu, own) in pairs.items()
    ]
    names = {name: torch.zeros(16, 16) for name in ("a", "b")}
    names |= {name: torch.zeros(16, 16, device="sim") for name in ("x", "y")}
    return cases, names


def _bench(family: str, backend: str, tier: str, view: str) -> Bench:
    """Returns the cases of a family with the way between the two states."""
    namespace: dict[str, Any] = {"torch": torch}

    def enter() -> None:
        cuda_morph.activate(backend, view=view)

    if family == "bystanders":
        cases, names = bystanders()
        return Bench(cases, namespace | names, enter, cuda_morph.deactivate)
    if family == "redirected":
        cases, names = redirected(backend, tier)
        return Bench(cases, namespace | names, enter, cuda_morph.deactivate)
    if family == "sim":
        cases, names = sim()
        wait = torch.sim.synchronize
        return Bench(cases, namespace | names, wait, wait, time.perf_counter)
    enter()  # both are timed while active: the same statement calls the one function or the other
    cases, names = answered(backend)
    shared = namespace | names

    def through() -> None:
        shared.update({name: getattr(torch.cuda, name) for name in names["targets"]})

    return Bench(cases, shared, through, lambda: shared.update(names))


def main() -> None:
    """Measures the families one after the other; ``answered`` stays active and comes last."""
    backend, tier, view, rounds, *families = sys.argv[1:]
    torch.set_num_threads(1)
    os.environ["CUDA_MORPH_TIER"] = tier
    cuda_morph.activate(backend, view=view)  # the first activation loads the backend
    cuda_morph.deactivate()
    rows = []
    for family in families:
        where = "simulated device, CPU" if family == "sim" else f"{tier} {view} {backend}"
        rows += measure(_bench(family, backend, tier, view), family, where, int(rounds))
    print(json.dumps([row.as_dict() for row in rows]))


main()
