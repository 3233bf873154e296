"""PyTorch's compilers under an active shim: each cell is one process that runs all its checks."""

from __future__ import annotations

import ast
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "compile_programs"
ALL = ("dynamo_matrix", "tools", "custom_operators", "bucketing", "compiled_code")
QUICK = ("dynamo_matrix", "tools", "custom_operators")
CELLS = {
    (tier, backend, view): ALL if tier == "T0" else QUICK
    for tier in ("T0", "T1")
    for backend in ("sim", "cpu")
    for view in ("native", "cuda")
}


def checks_of(program: str) -> list[str]:
    body = ast.parse((PROGRAMS / f"{program}.py").read_text()).body
    names = [node.name for node in body if isinstance(node, ast.FunctionDef)]
    return [f"{program}.{name}" for name in names if name.startswith("check_")]


def python(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_MORPH")}
    kept = {name: value for name, value in os.environ.items() if name == "CUDA_MORPH_SIM_CACHE"}
    return subprocess.run(
        [sys.executable, *arguments],
        env=clean | kept | {"OMP_NUM_THREADS": "1"} | variables,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@functools.cache
def simulated() -> str:
    """Returns why there is no simulated device here, or an empty string."""
    from cuda_morph import plugins

    row = plugins.get_plugin("sim", detect=True)
    return "" if row.status.value == "ready" else row.reason


@functools.cache
def outcomes(tier: str, backend: str, view: str) -> tuple[dict[str, str], str]:
    programs = CELLS[tier, backend, view]
    script = str(PROGRAMS / "checks.py")
    done = python(script, backend, view, *programs, CUDA_MORPH_TIER=tier)
    rows = [
        json.loads(line.removeprefix("CHECK "))
        for line in done.stdout.splitlines()
        if line.startswith("CHECK ")
    ]
    return {row["check"]: row["error"] for row in rows}, done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tier", "backend", "view", "check"),
    [
        pytest.param(*cell, check, id=f"{'-'.join(cell)}-{check}")
        for cell, programs in CELLS.items()
        for program in programs
        for check in checks_of(program)
    ],
)
def test_compilers(tier: str, backend: str, view: str, check: str) -> None:
    if backend == "sim" and simulated():
        pytest.skip(simulated())
    errors, ending = outcomes(tier, backend, view)
    error = errors.get(check, f"was not reached; the process ended so:\n{ending}")
    if error:
        pytest.fail(error, pytrace=False)


BACKENDS = pytest.mark.parametrize("backend", ["sim", "cpu"])


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


@BACKENDS
def test_activation_loads_no_compiler(backend: str) -> None:
    program = f"""
import sys, torch, cuda_morph
for view in ("native", "cuda"):
    with cuda_morph.activate({backend!r}, view=view):
        torch.ones(2, device="cuda").sum()
print(*[name for name in ("torch._dynamo", "torch._inductor") if name in sys.modules], "end")
"""
    if backend == "sim" and simulated():
        pytest.skip(simulated())
    assert lines(python("-c", program)) == ["end"]


def test_dynamo_loaded_later_answers_is_cuda_until_deactivation() -> None:
    program = """
import sys, torch, cuda_morph
finders = len(sys.meta_path)
def compiled():
    torch._dynamo.reset()
    return torch.compile(lambda x: x + x.is_cuda, backend="eager")(torch.zeros(1)).item()
with cuda_morph.activate("cpu"):
    print("torch._dynamo" in sys.modules, compiled())
print(compiled(), len(sys.meta_path) == finders)
with cuda_morph.activate("cpu"):
    print(compiled())
with cuda_morph.activate("cpu"):
    pass
print(compiled(), len(sys.meta_path) == finders)
"""
    assert lines(python("-c", program)) == ["False", "1.0", "0.0", "True", "1.0", "0.0", "True"]


def test_toggling_resets_dynamo_only_where_it_is_loaded() -> None:
    program = """
import sys, torch, cuda_morph
with cuda_morph.activate("cpu"):
    pass
print("torch._dynamo" in sys.modules)
from torch._dynamo.testing import CompileCounter
counter = CompileCounter()
compiled = torch.compile(lambda x: x + torch.cuda.is_available(), backend=counter)
answers = [compiled(torch.zeros(1)).item()]
with cuda_morph.activate("cpu", view="cuda"):
    answers += [compiled(torch.zeros(1)).item(), compiled(torch.zeros(1)).item()]
answers.append(compiled(torch.zeros(1)).item())
print(*answers, counter.frame_count)
"""
    assert lines(python("-c", program)) == ["False", "0.0", "1.0", "1.0", "0.0", "3"]


PLAIN = """
import torch
from torch._dynamo.testing import CompileCounter
counter = CompileCounter()
def function(x, flag):
    y = x.sin() + torch.zeros(x.shape[0], device="cpu")
    return y.to("cpu") * 2 if flag else y.cos()
compiled = torch.compile(function, backend=counter, fullgraph=True)
for n in (2, 3, 4, 5, 6):
    compiled(torch.ones(n), True)
compiled(torch.ones(2, dtype=torch.float64), True)
compiled(torch.ones(2), False)
model = torch.compile(torch.nn.Linear(3, 2), backend="aot_eager")
model(torch.ones(1, 3)).sum().backward()
print(counter.frame_count, counter.op_count)
"""


@pytest.mark.slow
@BACKENDS
def test_plain_cpu_code_compiles_as_without(backend: str) -> None:
    if backend == "sim" and simulated():
        pytest.skip(simulated())
    expected = lines(python("-c", PLAIN))
    for view in ("native", "cuda"):
        activated = f"import cuda_morph; cuda_morph.activate({backend!r}, view={view!r})\n{PLAIN}"
        assert lines(python("-c", activated)) == expected, view
        launched = ("-m", "cuda_morph", "run", "--backend", backend, "--view", view)
        child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {PLAIN!r}])"
        assert lines(python(*launched, "-c", child)) == expected, view


def test_wrong_buckets_are_refused() -> None:
    from cuda_morph import ShapeBucketer
    from cuda_morph.errors import SettingError

    for buckets in ([], [0], [-4, 8], [2.5]):
        with pytest.raises(SettingError, match="CM-E06"):
            ShapeBucketer(buckets)
    with pytest.raises(SettingError, match="cache_size"):
        ShapeBucketer([4], cache_size=0)


@pytest.mark.parametrize(("length", "expected"), [(1, 8), (8, 8), (9, 16), (17, 32), (33, 48)])
def test_bucket_of_a_length(length: int, expected: int) -> None:
    from cuda_morph import ShapeBucketer

    assert ShapeBucketer([16, 8]).bucket(length) == expected


def test_backend_name_without_a_compiler_and_with_a_vendors_own() -> None:
    program = """
import os, cuda_morph
print(cuda_morph.get_compile_backend())
cuda_morph.activate("cpu")
os.environ["CXX"] = "/nonexistent/compiler"
print(cuda_morph.get_compile_backend())
from torch._dynamo import register_backend
register_backend(lambda module, inputs: module, name="cpu")
print(cuda_morph.get_compile_backend())
"""
    assert lines(python("-c", program)) == ["inductor", "aot_eager", "cpu"]


@pytest.mark.skipif(bool(simulated()), reason=simulated())
def test_backend_name_on_a_simulated_device_of_a_vendor() -> None:
    pytest.importorskip("cuda_morph_ascend")
    program = """
import torch, cuda_morph
cuda_morph.activate("sim:ascend", view="cuda")
name = cuda_morph.get_compile_backend()
print(name, torch.compile(torch.neg, backend=name)(torch.ones(1, device="cuda")).item())
from torch._dynamo import register_backend
register_backend(lambda module, inputs: module, name="npu")
print(cuda_morph.get_compile_backend())
"""
    assert lines(python("-c", program)) == ["aot_eager", "-1.0", "npu"]
