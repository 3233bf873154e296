"""What only a card can show. Nobody has run these yet; ``docs/validation.md`` lists them.

``pytest --run-hardware tests/test_on_hardware.py`` runs them for each plugin whose accelerator is
there, each in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from cuda_morph.plugins import PluginStatus, collect, get_plugin

pytestmark = pytest.mark.hardware

NAMES = ("ascend", "biren", "cambricon", "enflame", "metax", "musa", "rocm", "xpu")


@pytest.fixture(params=NAMES)
def plugin(request):
    row = get_plugin(request.param, detect=True)
    if row.status is not PluginStatus.READY:
        pytest.skip(row.reason)
    return row


def run(row, program, *, ranks=1):
    """Runs a CUDA program on the card, as a user would."""
    command = [sys.executable, "-m", "cuda_morph", "run", "--backend", row.name]
    if ranks > 1:
        command += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        command += ["--no-python", sys.executable]
    command += ["-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_health_check_passes(plugin):
    checks = [check for _, check in collect("cuda_morph_health_checks", plugin=plugin.name)]
    failed = {check.id: result.message for check in checks if (result := check.run()).ok is False}
    assert failed == {}


def test_training_follows_the_cpu(plugin):
    run(
        plugin,
        """
        import copy, torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))
        x, y = torch.randn(64, 16), torch.randint(4, (64,))
        losses = {}
        for device in ("cpu", "cuda"):
            trained = copy.deepcopy(model).to(device)
            optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
            for _ in range(20):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(trained(x.to(device)), y.to(device))
                loss.backward()
                optimizer.step()
            losses[device] = loss.item()
        assert abs(losses["cpu"] - losses["cuda"]) < 1e-2, losses
        """,
    )


def test_running_out_of_memory_can_be_caught(plugin):
    run(
        plugin,
        """
        import torch
        total = torch.cuda.mem_get_info()[1]
        try:
            torch.empty(2 * total, dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError:
            pass
        else:
            raise SystemExit("no error")
        assert (torch.ones(3, device="cuda") + 1).sum().item() == 6
        """,
    )


def test_streams_and_events_measure_work(plugin):
    run(
        plugin,
        """
        import torch
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        x = torch.randn(2048, 2048, device="cuda")
        with torch.cuda.stream(torch.cuda.Stream()):
            start.record()
            for _ in range(20):
                x = torch.tanh(x @ x)
            end.record()
        torch.cuda.synchronize()
        assert start.elapsed_time(end) > 0
        """,
    )


def test_attention_follows_the_cpu(plugin):
    run(
        plugin,
        """
        import torch
        from torch.nn.functional import scaled_dot_product_attention as attention
        q, k, v = torch.randn(3, 2, 4, 128, 64).unbind(0)
        expected = attention(q, k, v, is_causal=True)
        found = attention(*(t.cuda().half() for t in (q, k, v)), is_causal=True)
        assert (found.float().cpu() - expected).abs().max() < 2e-2
        """,
    )


def test_the_adapters_graphs_answer_for_cudas(plugin):
    run(
        plugin,
        """
        import torch
        x = torch.ones(8, device="cuda")
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = x * 2
        x.fill_(3)
        graph.replay()
        torch.cuda.synchronize()
        assert y.sum().item() == 48
        """,
    )


def test_two_cards_reduce(plugin):
    if plugin.detection.device_count < 2:
        pytest.skip("one card only")
    run(
        plugin,
        """
        import os, torch, torch.distributed as dist
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl")
        x = torch.ones(4, device="cuda") * (dist.get_rank() + 1)
        dist.all_reduce(x)
        assert x.tolist() == [3.0] * 4
        dist.destroy_process_group()
        """,
        ranks=2,
    )
