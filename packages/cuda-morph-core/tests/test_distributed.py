"""Groups of processes, as CUDA programs start them; two ranks on the simulated device."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tier_cells

PROGRAMS = Path(__file__).with_name("distributed_programs")
SITES = (PROGRAMS / "site", PROGRAMS.with_name("tier_programs") / "native_libraries_site")


@pytest.fixture(autouse=True)
def need_the_simulated_device() -> None:
    if tier_cells.simulated():
        pytest.skip(f"no simulated device: {tier_cells.simulated()}")


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if "CUDA_MORPH" not in name}
    if cache := os.environ.get("CUDA_MORPH_SIM_CACHE"):
        kept["CUDA_MORPH_SIM_CACHE"] = cache
    paths = [*map(str, SITES), *filter(None, [os.environ.get("PYTHONPATH")])]
    settings = {
        "PYTHONPATH": os.pathsep.join(paths),
        "CUDA_MORPH_SIM_DEVICES": "2",
        "OMP_NUM_THREADS": "1",
    }
    return kept | settings


def python(*command: str, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *command],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def torchrun(view: str, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    ranks = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    run = ["-m", "cuda_morph", "run", "--backend", "sim", "--view", view]
    return python(*run, *ranks, str(PROGRAMS / program), *arguments)


def train_alone() -> tuple[list[float], dict[str, object]]:
    """Trains as ``train.py`` does, in one process on the CPU with the batches of both ranks."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(0)
        inputs, targets = torch.randn(24, 6), torch.randint(3, (24,))
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
    losses = []
    for _epoch in range(2):
        for step in range(0, 12, 4):
            parts = [slice(2 * step + rank, 2 * step + rank + 8, 2) for rank in range(2)]
            each = [
                torch.nn.functional.cross_entropy(model(inputs[part]), targets[part])
                for part in parts
            ]
            optimizer.zero_grad()
            (sum(each) / 2).backward()
            optimizer.step()
            losses.append(sum(one.item() for one in each) / 2)
    return losses, model.state_dict()


@pytest.mark.parametrize("view", ["cuda", "native"])
def test_an_unmodified_script_trains_like_one_process(tmp_path: Path, view: str) -> None:
    torch = pytest.importorskip("torch")
    out = tmp_path / "result.pt"
    torchrun(view, "train.py", "--out", str(out))
    found = torch.load(out)
    losses, state = train_alone()
    assert found["losses"] == pytest.approx(losses, rel=1e-5)
    assert found["where"] == ("cuda:0" if view == "cuda" else "sim:0")
    torch.testing.assert_close(found["state"], dict(state))


@pytest.mark.parametrize("view", ["cuda", "native"])
def test_every_spelling_starts_the_accelerators_backend(tmp_path: Path, view: str) -> None:
    done = torchrun(view, "spellings.py", view, "simccl", str(tmp_path))
    assert sorted(line for line in done.stdout.splitlines() if "rank" in line) == [
        "rank 0: all spellings",
        "rank 1: all spellings",
    ], done.stdout


@pytest.mark.parametrize("plugin", ["branching", "creating", "unregistered"])
def test_names_and_the_way_back(plugin: str) -> None:
    assert python(str(PROGRAMS / "one_process.py"), plugin).stdout.endswith("done\n")


def test_averages_where_the_library_has_none(tmp_path: Path) -> None:
    ranks = [
        subprocess.Popen(
            [sys.executable, str(PROGRAMS / "averages.py"), "averageless", str(tmp_path)],
            env=environment() | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    said = [rank.communicate(timeout=200)[0] for rank in ranks]
    assert all(text.endswith("averages\n") for text in said), said
