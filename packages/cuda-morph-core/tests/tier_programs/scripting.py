"""TorchScript: device strings inside compiled code, traces, and loading."""

from __future__ import annotations

import io

import torch
from world import declared_limit


def make():
    return torch.zeros([2], device="cuda")


def move(value: torch.Tensor):
    return value.to("cuda") + 1


def check_trace(world):
    traced = torch.jit.trace(lambda value: value.to("cuda") + 1, torch.ones(2))
    assert traced(torch.ones(2)).device == world.device()


@declared_limit("inside TorchScript", tiers=("T3",))
def check_script_creates(world):
    assert torch.jit.script(make)().device == world.device()


@declared_limit("inside TorchScript", tiers=("T3",))
def check_script_moves(world):
    assert torch.jit.script(move)(torch.ones(2)).device == world.device()


def check_script_with_a_device_argument(world):
    def create(device: torch.device):
        return torch.zeros([2], device=device) + torch.ones([2], device=device)

    assert torch.jit.script(create)(torch.device("cuda")).device == world.device()


def check_load(world):
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), buffer)
    for location in ("cuda", torch.device("cuda")):
        buffer.seek(0)
        loaded = torch.jit.load(buffer, map_location=location)
        assert loaded.weight.device == world.device(), location


def check_script_knows_pytorchs_functions(world):
    def grow(value: torch.Tensor):
        return value + torch.ones([2]) * torch.arange(2) + torch.zeros_like(value)

    assert torch.jit.script(grow)(torch.zeros(2)).tolist() == [0, 1]
