"""Ported programs give what they gave before, on the CPU and on the simulated device."""

import subprocess
import sys
from pathlib import Path

import pytest

from cuda_morph.port.source_port import port_source

ROOT = Path(__file__).parents[3]
PROGRAM = """
import torch
from torch.cuda.amp import autocast

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
net = torch.nn.Linear(8, 4)
x = torch.randn(16, 8)
if torch.cuda.is_available():
    net, x = net.cuda(), x.cuda(non_blocking=True)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
if x.is_cuda:
    assert x.device.type == "cuda"
    with autocast(dtype=torch.bfloat16):
        assert (x @ x.T).dtype is torch.bfloat16
print(f"{loss.item():.6f}", torch.get_default_dtype())
"""


def run(program, *, on_sim, cwd):
    head = "import cuda_morph_sim.loader as l; l.load('sim')\n" if on_sim else ""
    done = subprocess.run(
        [sys.executable, "-c", head + program], capture_output=True, text=True, cwd=cwd, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_ported_program_gives_the_same_on_cpu_and_on_the_simulated_device(tmp_path):
    after = port_source(PROGRAM).after
    assert "torch.cuda" not in after.replace("torch.cuda.amp", "")
    original = run(PROGRAM, on_sim=False, cwd=tmp_path)
    assert run(after, on_sim=False, cwd=tmp_path) == original
    assert run(after, on_sim=True, cwd=tmp_path) == original


ON_SIM = """
import runpy, sys
import cuda_morph_sim.loader as loader
loader.load("sim")
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
TRAINING = (
    "--steps 4 --n-layer 1 --n-embd 32 --batch-size 4 --block-size 16 --workers 0 --sample 20"
)


def train(*command, cwd, out):
    options = [*TRAINING.split(), "--out", out]
    command = [sys.executable, *command, *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    results = [cwd / out / name for name in ("metrics.json", "sample.txt")]
    return (
        done.returncode,
        [path.read_text() for path in results if path.exists()],
        done.stderr.splitlines()[-1:] if done.returncode else [],
    )


@pytest.mark.long
def test_the_training_example_gives_the_same_numbers_when_ported(tmp_path):
    """As it stands under ``cuda-morph run``, and ported without it; and without any device."""
    pytest.importorskip("tqdm")
    program = ROOT / "examples" / "train_char_gpt.py"
    result = port_source(program.read_text())
    assert not result.left
    ported_program = tmp_path / program.name
    ported_program.write_text(result.after)
    (tmp_path / "data").symlink_to(ROOT / "examples" / "data")
    launcher = ["-m", "cuda_morph", "run", "--backend", "sim"]
    as_it_stands = train(*launcher, str(program), cwd=tmp_path, out="before")
    assert (as_it_stands[0], len(as_it_stands[1])) == (0, 2), as_it_stands
    assert train("-c", ON_SIM, str(ported_program), cwd=tmp_path, out="after") == as_it_stands
    without_device = train(str(program), cwd=tmp_path, out="cpu")
    assert without_device[0] == 1
    assert train(str(ported_program), cwd=tmp_path, out="cpu") == without_device
