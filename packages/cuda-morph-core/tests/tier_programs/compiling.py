"""Compiled training, and the tools around the compiler: fake tensors, export, tracing."""

from __future__ import annotations

import torch
from torch import nn
from world import only, raises


def check_early_name_in_compiled_code(world):
    from early_references import zeros

    def function(x):
        return x.cuda() + zeros(2, device="cuda")

    assert torch.compile(function, backend="eager", fullgraph=True)(torch.ones(2)).tolist() == [
        1,
        1,
    ]


def check_plain_cpu_code_compiles(world):
    def function(x):
        return x + torch.zeros(2, device="cpu")

    compiled = torch.compile(function, backend="eager", fullgraph=True)
    assert compiled(torch.ones(2)).tolist() == [1, 1]
    assert compiled(torch.ones(3)[:2]).tolist() == [1, 1]


def check_compiled_training(world):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)).cuda()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    data = torch.randn(8, 4, device="cuda")
    loss = compiled(data).pow(2).mean()
    loss.backward()
    expected = torch.autograd.grad(model(data).pow(2).mean(), list(model.parameters()))
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


def check_fake_tensors(world):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        made = torch.empty(2, 3, device="cuda")
        assert made.device == world.device()
        assert (made.to("cuda") @ torch.ones(3, 2).cuda()).device == world.device()


def check_export(world):
    class Model(nn.Module):
        def forward(self, value):
            return value.to("cuda") + torch.ones(2, device="cuda")

    program = torch.export.export(Model(), (torch.ones(2),))
    assert program.module()(torch.ones(2)).tolist() == [2, 2]


def check_symbolic_trace(world):
    def function(value):
        return value.to("cuda") + torch.ones(2, device="cuda")

    graph = torch.fx.symbolic_trace(function)
    assert graph(torch.ones(2)).device == world.device()


def check_make_fx(world):
    from torch.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(lambda value: value.cuda() + torch.ones(2, device="cuda"))(torch.ones(2))
    assert graph(torch.ones(2)).tolist() == [2, 2]


def check_vmap(world):
    result = torch.vmap(lambda row: row.to("cuda") + torch.ones(2, device="cuda"))(torch.ones(3, 2))
    assert result.device == world.device()


@only(backends=("sim",))
def check_stream_in_compiled_code(world):
    def function(x):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            result = x.cuda() + 1
        torch.cuda.current_stream().wait_stream(stream)
        return result

    assert torch.compile(function, backend="eager", fullgraph=True)(torch.ones(2)).tolist() == [
        2,
        2,
    ]


def check_wrong_strings_fail_when_compiled(world):
    compiled = torch.compile(lambda x: x.to("cuda:x"), backend="eager", fullgraph=True)
    raises(Exception, compiled, torch.ones(1))
