"""Sixteen mentions of the device in compiled code: one graph, and the answer of eager code."""

from __future__ import annotations

import torch
from torch._dynamo.testing import CompileCounterWithBackend


def same_in_one_graph(function):
    value = torch.arange(4.0)
    expected = function(value)
    for backend in ("eager", "aot_eager"):
        torch._dynamo.reset()
        counter = CompileCounterWithBackend(backend)
        compiled = torch.compile(function, backend=counter, fullgraph=True)
        for _ in range(2):
            found = compiled(value)
            assert found.device == expected.device, (backend, found.device, expected.device)
            assert found.dtype == expected.dtype, (backend, found.dtype)
            assert torch.equal(found.cpu(), expected.cpu()), (backend, found, expected)
        assert counter.frame_count == 1, (backend, counter.frame_count)


def check_to_string(world):
    same_in_one_graph(lambda x: x.to("cuda") * 2)


def check_factory(world):
    same_in_one_graph(lambda x: torch.zeros(4, device="cuda") + x.to("cuda"))


def check_device(world):
    same_in_one_graph(lambda x: x.to(torch.device("cuda")) - 1)


def check_device_index(world):
    same_in_one_graph(lambda x: x.to(torch.device("cuda", 0)) - 1)


def check_cuda(world):
    same_in_one_graph(lambda x: x.cuda().sin())


def check_cuda_index(world):
    same_in_one_graph(lambda x: x.cuda(0).sin())


def check_cuda_non_blocking(world):
    same_in_one_graph(lambda x: x.cuda(non_blocking=True).sin())


def check_is_available(world):
    same_in_one_graph(lambda x: x.cuda() * (3 if torch.cuda.is_available() else 5))


def check_is_cuda(world):
    assert torch.ones(1).cuda().is_cuda
    same_in_one_graph(lambda x: x.cuda() * (3 if x.cuda().is_cuda else 5))


def check_device_type(world):
    same_in_one_graph(lambda x: x.cuda() * (3 if x.cuda().device.type == "cuda" else 5))


def check_device_equality(world):
    same_in_one_graph(lambda x: x + (1 if x.cuda().device == torch.device("cuda:0") else 2))


def check_current_device(world):
    same_in_one_graph(lambda x: x.to(f"cuda:{torch.cuda.current_device()}") + 1)


def check_autocast(world):
    def function(x):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return x.cuda().reshape(2, 2) @ x.cuda().reshape(2, 2)

    same_in_one_graph(function)
    assert function(torch.ones(4)).dtype == torch.bfloat16


def check_isinstance(world):
    same_in_one_graph(lambda x: x.cuda() + (1 if isinstance(x.cuda().device, torch.device) else 2))


def check_synchronize(world):
    def function(x):
        result = x.cuda() + 1
        torch.cuda.synchronize()
        return result

    same_in_one_graph(function)


def check_module(world):
    layer = torch.nn.Linear(4, 4).to("cuda")
    same_in_one_graph(lambda x: layer(x.cuda()).relu())
