"""The default device, as a setting and as a context."""

from __future__ import annotations

import torch
from torch import nn


def check_context(world):
    with torch.device("cuda"):
        made = (torch.ones(2), torch.arange(3), torch.tensor(1), torch.fft.fftfreq(3))
        layer = nn.Linear(2, 2)
    assert {tensor.device for tensor in (*made, layer.weight)} == {world.device()}
    assert torch.ones(1).device.type == "cpu"


def check_context_with_index(world):
    last = world.devices - 1
    with torch.device("cuda", last):
        assert torch.zeros(1).device == world.device(last)
        assert torch.zeros(1, device="cpu").device.type == "cpu"


def check_setting(world):
    torch.set_default_device("cuda")
    try:
        assert torch.ones(1).device == world.device()
        assert torch.get_default_device() == world.device()
    finally:
        torch.set_default_device(None)
    assert torch.ones(1).device.type == "cpu"


def check_nested_contexts(world):
    with torch.device("cuda"):
        with torch.device("meta"):
            assert torch.ones(1).device.type == "meta"
        assert torch.ones(1).device == world.device()


def check_function_modes_see_pytorchs_functions(world):
    from torch.overrides import TorchFunctionMode

    seen = []

    class Spy(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    with Spy():
        tensor = torch.zeros(2, device="cuda")
    assert tensor.device == world.device()
    assert seen[0] == torch.zeros
    assert {torch.zeros: True}[seen[0]]


def check_subclasses_see_pytorchs_functions(world):
    class Tagged(torch.Tensor):
        called = []

        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            cls.called.append(function.__name__)
            return super().__torch_function__(function, types, args, kwargs or {})

    moved = torch.ones(2).as_subclass(Tagged).to("cuda")
    assert type(moved) is Tagged
    assert moved.device == world.device()
    assert "to" in Tagged.called
