"""Sixteen ways to mention the device under ``torch.compile``: one graph, the eager answer."""

from __future__ import annotations

import torch


def agrees(function):
    """Compiles without graph breaks on two backends and compares with the eager result."""
    value = torch.ones(2)
    expected = function(value)
    for backend in ("eager", "aot_eager"):
        torch._dynamo.reset()
        found = torch.compile(function, backend=backend, fullgraph=True)(value)
        assert (found.device, found.dtype) == (expected.device, expected.dtype), backend
        assert torch.equal(found.cpu(), expected.cpu()), (backend, found, expected)


def check_to_string(world):
    agrees(lambda x: x.to("cuda") + 1)


def check_factory_string(world):
    agrees(lambda x: x.cuda() + torch.zeros(2, device="cuda"))


def check_device_object(world):
    agrees(lambda x: x.to(torch.device("cuda")) + 1)


def check_device_with_index(world):
    agrees(lambda x: x.to(torch.device("cuda", 0)) + 1)


def check_cuda(world):
    agrees(lambda x: x.cuda() * 2)


def check_cuda_with_index(world):
    agrees(lambda x: x.cuda(0) * 2)


def check_cuda_non_blocking(world):
    agrees(lambda x: x.cuda(non_blocking=True) * 2)


def check_is_available(world):
    agrees(lambda x: x + (1 if torch.cuda.is_available() else 2))


def check_is_cuda(world):
    agrees(lambda x: x + (1 if x.cuda().is_cuda else 2))


def check_device_type(world):
    agrees(lambda x: x + len(x.cuda().device.type))


def check_device_equality(world):
    agrees(lambda x: x + (1 if x.cuda().device == torch.device("cuda:0") else 2))


def check_current_device(world):
    agrees(lambda x: x + torch.cuda.current_device())


def check_autocast(world):
    def function(x):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return x.cuda().reshape(1, 2) @ x.cuda().reshape(2, 1)

    agrees(function)


def check_isinstance(world):
    agrees(lambda x: x + (1 if isinstance(x.device, torch.device) else 2))


def check_synchronize(world):
    def function(x):
        torch.cuda.synchronize()
        return x.cuda() + 1

    agrees(function)


def check_module(world):
    layer = torch.nn.Linear(2, 2, device="cuda")
    agrees(lambda x: layer(x.cuda()))
