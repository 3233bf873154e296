"""What running real CUDA programs taught, one small program per lesson, run as users run it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import tier_cells

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "import torch\nclass Net(torch.nn.Linear):\n    pass\n"


@pytest.fixture(autouse=True)
def need_the_simulated_device() -> None:
    if tier_cells.simulated():
        pytest.skip(f"no simulated device: {tier_cells.simulated()}")


def run(
    folder: Path, program: str, *arguments: str, code: int = 0, backend: str = "sim"
) -> subprocess.CompletedProcess[str]:
    """Runs a program from its folder under ``cuda-morph run``."""
    (folder / "train.py").write_text(program)
    (folder / "model.py").write_text(MODEL)
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == "CUDA_MORPH_SIM_CACHE" or "CUDA_" not in name
    }
    done = subprocess.run(
        [sys.executable, "-m", "cuda_morph", "run", "--backend", backend, "train.py", *arguments],
        cwd=folder,
        env=kept | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def test_lesson_1_options_siblings_exit_codes_and_tracebacks(tmp_path: Path) -> None:
    program = """
import argparse, sys
from model import Net
parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")
parser.add_argument("--backend")
options = parser.parse_args()
print(Net(2, 2).to(options.device).weight.device, options.backend, sys.argv[0])
if options.backend == "raise":
    raise KeyError("from the program")
sys.exit(3)
"""
    done = run(tmp_path, program, "--device", "cuda:1", "--backend", "mine", code=3)
    assert done.stdout.split() == ["cuda:1", "mine", "train.py"]
    done = run(tmp_path, program, "--backend", "raise", code=1)
    assert "Traceback (most recent call last)" in done.stderr
    assert "KeyError: 'from the program'" in done.stderr


def test_lesson_2_devices_in_every_spelling(tmp_path: Path) -> None:
    program = """
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--device", type=torch.device, default="cuda")
device = parser.parse_args().device
def fresh(n, device="cuda"):
    return torch.zeros(n, device=device)
rank = 1
assert device == torch.device("cuda") and device.type == "cuda"
assert fresh(1).device != torch.device("cuda") and fresh(1).device == torch.device("cuda:0")
assert torch.ones(1).to(f"cuda:{rank}").get_device() == 1
assert torch.ones(1).to(0).is_cuda and torch.zeros(1, device=0).is_cuda
with torch.device("cuda"):
    assert torch.ones(1).is_cuda
Tensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor
assert Tensor(2, 3).is_cuda and torch.ones(1).double().type(Tensor).dtype == torch.float32
torch.set_default_device("cuda")
assert torch.ones(1).is_cuda
torch.set_default_device("cpu")
torch.set_default_tensor_type(torch.cuda.HalfTensor)
assert torch.ones(1).is_cuda and torch.ones(1).dtype == torch.float16
"""
    run(tmp_path, program)


def test_lesson_3_internals_that_programs_call(tmp_path: Path) -> None:
    program = """
import torch
from torch.utils.checkpoint import get_device_states, set_device_states
done = []
torch.cuda._lazy_call(lambda: done.append(True))
assert done and torch.cuda.default_generators[1].device == torch.device("cuda:1")
torch.cuda.random.set_rng_state(torch.cuda.random.get_rng_state("cuda:1"), "cuda:1")
assert torch.cuda.nccl.version() >= (0, 0, 0)
set_device_states(*get_device_states(torch.ones(1, device="cuda:1")))
torch.cuda._sleep(1000)
"""
    run(tmp_path, program)


def test_lesson_4_torch_asks_back(tmp_path: Path) -> None:
    program = """
import torch
import torch._dynamo
assert torch.cuda._is_compiled()
from torch._C import _cuda_getCurrentRawStream
assert isinstance(_cuda_getCurrentRawStream(0), int)
model = torch.nn.Linear(2, 2).cuda()
optimizer = torch.optim.AdamW(model.parameters())
step = torch.compile(lambda x: model(x).sum(), backend="eager")
step(torch.ones(1, 2, device="cuda")).backward()
optimizer.step()
assert torch.cuda.is_current_stream_capturing() is False
"""
    run(tmp_path, program)


def test_lesson_5_neutral_programs_run_on_the_device_and_leave_evidence(tmp_path: Path) -> None:
    program = """
import sys, torch
if not torch.accelerator.is_available() or torch.accelerator.device_count() < 2:
    print("Unable to locate sufficient 2 gpus"); sys.exit(0)
device = torch.accelerator.current_accelerator()
before = torch.cuda.memory_allocated()
x = torch.ones(1000, device=device)
print(x.device, torch.cuda.memory_allocated() - before >= x.nbytes)
"""
    assert run(tmp_path, program).stdout.split() == ["cuda:0", "True"]


@pytest.mark.parametrize(("backend", "dtype"), [("sim", "float16"), ("cpu", "bfloat16")])
def test_lesson_6_autocast_without_a_dtype_is_a_choice(
    tmp_path: Path, backend: str, dtype: str
) -> None:
    program = """
import torch
model = torch.nn.Linear(4, 4).cuda()
with torch.autocast("cuda"):
    result = model(torch.ones(2, 4, device="cuda"))
print(result.dtype, result.detach().float().cpu().numpy().shape)
"""
    done = run(tmp_path, program, backend=backend)
    assert done.stdout.split()[0] == f"torch.{dtype}"


def test_lesson_7_streams_are_real(tmp_path: Path) -> None:
    program = """
import torch
side, x = torch.cuda.Stream(), torch.ones(4, device="cuda")
with torch.cuda.stream(stream=side):
    x.record_stream(torch.cuda.current_stream())
    assert torch.cuda.current_stream() == side
assert isinstance(side, torch.Stream)
"""
    run(tmp_path, program)
    run(tmp_path, program, backend="cpu")


def test_lesson_8_compiling_under_autocast(tmp_path: Path) -> None:
    program = """
import torch
model = torch.nn.Linear(4, 4).cuda()
compiled = torch.compile(model, backend="aot_eager")
with torch.autocast("cuda", dtype=torch.bfloat16):
    assert compiled(torch.ones(2, 4, device="cuda")).dtype == torch.bfloat16
assert compiled(torch.ones(2, 4, device="cuda")).dtype == torch.float32
"""
    run(tmp_path, program)


def test_lesson_9_parallel_programs_in_every_spelling(tmp_path: Path) -> None:
    program = """
import os, sys, torch, torch.distributed as dist, torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP
def worker(rank, path):
    torch.cuda.set_device(rank)
    device = torch.device("cuda", rank)
    dist.init_process_group(
        "nccl", init_method=f"file://{path}", rank=rank, world_size=2, device_id=device)
    dist.barrier(device_ids=[rank])
    for ids in ([rank], [device]):
        model = DDP(torch.nn.Linear(2, 1).cuda(), device_ids=ids)
        model(torch.full((1, 2), float(rank), device="cuda")).sum().backward()
        assert model.module.weight.grad.tolist() == [[0.5, 0.5]]
    assert torch.cuda.current_device() == rank
    dist.destroy_process_group()
if __name__ == "__main__":
    assert torch.cuda.device_count() >= 2
    two = torch.nn.DataParallel(torch.nn.Linear(2, 2).cuda(), device_ids=[0, 1])
    assert two(torch.ones(4, 2, device="cuda")).shape == (4, 2)
    mp.spawn(worker, args=(os.path.abspath("rendezvous_cuda_1"),), nprocs=2)
    print("both")
"""
    assert run(tmp_path, program).stdout.strip() == "both"


def test_lesson_10_code_that_wakes_up_falls_back(tmp_path: Path) -> None:
    program = """
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
import torch
from torch.utils import cpp_extension
assert torch.cuda.is_available() and torch.cuda.device_count() == 1
try:
    cpp_extension.load_inline("kernel", "", cuda_sources="__global__ void f() {}")
except Exception as error:
    print("fallback", type(error).__name__)
model = torch.nn.Linear(4, 4).half().cuda()
assert model(torch.ones(1, 4, device="cuda").half()).dtype == torch.float16
assert torch.cuda.HalfTensor([1]).dtype == torch.float16
"""
    assert run(tmp_path, program).stdout.startswith("fallback")


def test_lesson_11_probing_for_torch_does_not_use_up_the_hook(tmp_path: Path) -> None:
    program = """
import importlib.util
for _ in range(3):
    assert importlib.util.find_spec("torch") is not None
import torch
print(torch.ones(1, device="cuda").device)
"""
    assert run(tmp_path, program).stdout.strip() == "cuda:0"
