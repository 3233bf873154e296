from __future__ import annotations

import copy

import pytest
import torch
from torch import nn


@pytest.fixture(autouse=True)
def fresh_compiler(sim):
    torch._dynamo.reset()


def agree(function, *inputs, **options):
    """Compiles to code in one graph and compares results and their device with eager."""
    from torch._inductor import metrics

    metrics.reset()
    found = torch.compile(function, fullgraph=True, **options)(*inputs)
    expected = function(*inputs)
    assert found.device == expected.device
    torch.testing.assert_close(found, expected)
    return metrics


def test_code_is_generated_and_fused(sim):
    metrics = agree(lambda x: (x * 2).relu() + x.exp(), torch.randn(64, device="sim"))
    assert metrics.generated_kernel_count == 1


def test_second_device(sim):
    value = torch.ones(4, device="sim:1")
    agree(lambda x: x * 2 + torch.arange(4, device=x.device), value)


def test_forward_and_backward(sim):
    module = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 1)).to("sim")
    reference = copy.deepcopy(module)
    data = torch.randn(6, 4, device="sim", requires_grad=True)
    torch.compile(module, fullgraph=True)(data).pow(2).sum().backward()
    mine, data.grad = data.grad, None
    reference(data).pow(2).sum().backward()
    torch.testing.assert_close(mine, data.grad)
    for ours, theirs in zip(module.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


def test_memory_is_shared_not_copied(sim):
    value = torch.ones(1024, device="sim")
    compiled = torch.compile(lambda x: x.add_(1))
    compiled(value)
    address, before = value.data_ptr(), sim.memory_allocated()
    compiled(value)
    assert value.data_ptr() == address
    assert value[0].item() == 3
    assert sim.memory_allocated() == before


def test_results_count_as_device_memory(sim):
    value = torch.ones(1 << 16, device="sim")
    compiled = torch.compile(lambda x: x * 2)
    compiled(value)
    before = sim.memory_allocated()
    result = compiled(value)
    assert sim.memory_allocated() - before >= result.nbytes


def test_moves_between_host_and_device_copy(sim):
    value = torch.ones(3, device="sim")
    host, device = torch.compile(lambda x, y: (x.cpu(), y.to("sim") * x))(value, torch.ones(3))
    value.zero_()
    assert (host.device.type, device.device.type) == ("cpu", "sim")
    assert host.tolist() == device.tolist() == [1, 1, 1]


def test_constants_branches_and_data_dependent_shapes(sim):
    constant = torch.arange(3.0, device="sim")
    value = torch.tensor([0.0, 2.0, 1.0], device="sim")
    agree(lambda x: x + constant, value)
    agree(lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)), value)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        agree(lambda x: x.nonzero() * 2, value)


def test_frozen_weights(sim):
    module = nn.Linear(3, 3).to("sim").eval()
    with torch._inductor.config.patch(freezing=True), torch.no_grad():
        agree(module, torch.ones(2, 3, device="sim"))


def test_random_numbers_come_from_the_device(sim):
    compiled = torch.compile(lambda x: nn.functional.dropout(x) + torch.rand_like(x))
    value = torch.ones(32, device="sim")
    host_state = torch.get_rng_state()
    results = []
    for seed in (1, 1, 2):
        sim.manual_seed(seed)
        results.append(compiled(value))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])
    assert torch.equal(host_state, torch.get_rng_state())


def test_cpu_code_is_left_alone(sim):
    agree(lambda x: x.sin() * 2, torch.ones(5))


@pytest.mark.parametrize("mode", ["reduce-overhead", "max-autotune"])
def test_modes(sim, mode):
    agree(lambda x: (x @ x).relu(), torch.randn(8, 8, device="sim"), mode=mode)


def test_inference_mode(sim, recwarn):
    with torch.inference_mode():
        agree(lambda x: x * 2, torch.ones(2, device="sim"))
    assert not [warning for warning in recwarn if "cuda_morph_sim" in str(warning.message)]


def test_nothing_of_the_compiler_is_loaded_before_it_is_used(python):
    program = """
import sys, torch
from cuda_morph_sim.loader import load
load()
torch.ones(2, device="sim").sum()
print([name for name in ("torch._dynamo", "torch._inductor") if name in sys.modules])
print(torch.compile(lambda x: x * 2)(torch.ones(1, device="sim")).item())
"""
    assert python(program).stdout.split() == ["[]", "2.0"]


def test_without_a_compiler_graphs_run_by_operator(python):
    program = """
import torch
from cuda_morph_sim.loader import load
load()
import os
os.environ["CXX"] = "/nonexistent/compiler"
compiled = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.0).sin().sum())
value = torch.ones(2, device="sim", requires_grad=True)
compiled(value).backward()
torch.testing.assert_close(value.grad, torch.ones_like(value).cos())
"""
    done = python(program)
    assert done.stderr.count("operator by operator") == 1
