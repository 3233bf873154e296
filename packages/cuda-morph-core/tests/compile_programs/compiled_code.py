"""Compiled programs: the default backend, training, shapes, streams, events, autocast."""

from __future__ import annotations

import copy
import warnings

import torch
from torch import nn


def compilations():
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def deprecated_autocast():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return torch.cuda.amp.autocast(dtype=torch.bfloat16)


def check_default_backend_generates_code(world):
    from torch._inductor import metrics

    metrics.reset()
    value = torch.randn(16, 16, device="cuda")

    def function(x):
        return torch.relu(x) * 2 + x.sum()

    found = torch.compile(function, fullgraph=True)(value)
    assert found.device == value.device
    torch.testing.assert_close(found, function(value))
    assert metrics.generated_kernel_count + metrics.codegen_mix_order_reduction > 0


def check_default_backend_trains(world):
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Linear(16, 1)).cuda()
    reference = copy.deepcopy(model)
    compiled = torch.compile(model, fullgraph=True)
    data = torch.randn(32, 8, device="cuda")
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.05) for m in (model, reference)]
    for _ in range(3):
        for forward, optimizer in zip((compiled, reference), optimizers, strict=True):
            optimizer.zero_grad()
            forward(data).pow(2).mean().backward()
            optimizer.step()
    for mine, theirs in zip(
        model.state_dict().values(), reference.state_dict().values(), strict=True
    ):
        assert mine.device == data.device
        torch.testing.assert_close(mine, theirs)


def check_dynamic_shapes_compile_once(world):
    torch._dynamo.utils.counters.clear()

    def function(x):
        return (x * x).sum(0)

    compiled = torch.compile(function, dynamic=True, fullgraph=True)
    for length in (4, 5, 9, 17):
        value = torch.randn(length, 3, device="cuda")
        torch.testing.assert_close(compiled(value), function(value))
    assert compilations() == 1, compilations()


def check_input_is_changed_in_place(world):
    value = torch.ones(4, device="cuda")
    assert torch.compile(lambda x: x.add_(1) * 2)(value).tolist() == [4] * 4
    assert value.tolist() == [2] * 4


def check_moves_to_the_host_copy(world):
    if world.backend == "cpu":
        return  # .cpu() of a CPU tensor is the tensor itself, also without a compiler
    value = torch.ones(4, device="cuda")
    host, _ = torch.compile(lambda x: (x.cpu(), x + 1))(value)
    value.add_(1)
    assert host.device.type == "cpu"
    assert host.tolist() == [1] * 4


def check_random_numbers_repeat(world):
    compiled = torch.compile(lambda x: nn.functional.dropout(x, 0.5) + torch.rand_like(x))
    value = torch.ones(64, device="cuda")
    results = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        results.append(compiled(value))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def check_streams_and_events(world):
    def function(x):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            result = x.cuda() + 1
            event = torch.cuda.Event()
            event.record(stream)
        event.wait(torch.cuda.current_stream())
        torch.cuda.current_stream().wait_stream(stream)
        return result

    for backend in ("eager", "aot_eager"):
        torch._dynamo.reset()
        # Dynamo knows no streams of the CPU: there the graph is broken around them.
        compiled = torch.compile(function, backend=backend, fullgraph=world.backend != "cpu")
        assert compiled(torch.ones(2)).tolist() == [2, 2]


def check_autocast_around_compiled_code(world):
    model = nn.Linear(8, 8).cuda()
    data = torch.randn(4, 8, device="cuda")
    for backend in ("aot_eager", "inductor"):
        torch._dynamo.reset()
        compiled = torch.compile(model, backend=backend, fullgraph=True)
        for context in (
            lambda: torch.autocast("cuda", dtype=torch.bfloat16),
            lambda: torch.amp.autocast("cuda", dtype=torch.bfloat16),
            deprecated_autocast,
        ):
            with context():
                assert compiled(data).dtype == torch.bfloat16, backend
        assert compiled(data).dtype == torch.float32, backend


def check_autocast_inside_compiled_code(world):
    layer = nn.Linear(8, 8).cuda()

    def function(x):
        with torch.autocast(device_type="cuda", dtype=torch.float16):
            first = layer(x)
        return first, layer(x)

    data = torch.randn(4, 8, device="cuda")
    for backend in ("eager", "aot_eager", "inductor"):
        torch._dynamo.reset()
        half, full = torch.compile(function, backend=backend, fullgraph=True)(data)
        assert (half.dtype, full.dtype) == (torch.float16, torch.float32), backend


def check_gradient_scaler_with_compiled_step(world):
    model = nn.Linear(4, 1).cuda()
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.weight.detach().clone()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = torch.compile(model)(torch.ones(2, 4, device="cuda")).float().sum()
    scaler.scale(loss).backward()
    assert model.weight.grad.abs().max() > 100, "the loss was not scaled"
    scaler.step(optimizer)
    scaler.update()
    torch.testing.assert_close(model.weight, before - 0.2)


def check_plain_cpu_code(world):
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(lambda x: x.sin() + torch.zeros(3, device="cpu"), fullgraph=True)
    for _ in range(3):
        value = torch.randn(3)
        torch.testing.assert_close(compiled(value), value.sin())
    assert compilations() == 1
