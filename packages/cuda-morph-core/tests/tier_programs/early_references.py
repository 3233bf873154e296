"""Names that were taken from torch before activation."""

from __future__ import annotations

import sys

import torch
from torch import device as early_device
from torch import tensor, zeros
from torch.cuda import Event, Stream, manual_seed_all, synchronize
from torch.fft import fftfreq
from world import declared_limit


def keep(function):
    def call(*arguments, **keywords):
        return function(*arguments, **keywords)

    return call


kept_zeros = keep(torch.zeros)
kept_table = {"ones": torch.ones}
kept_to = torch.Tensor.to


def with_default(create=torch.zeros):
    return create(1, device="cuda")


def check_names_in_a_module(world):
    assert zeros(2, device="cuda").device == world.device()
    assert tensor([1], device="cuda").device == world.device()
    assert fftfreq(3, device="cuda").device == world.device()
    assert early_device("cuda").type == world.shown
    assert sys.modules[__name__].zeros == torch.zeros


@declared_limit("taken from torch before activation", tiers=("T3",))
def check_name_in_a_closure(world):
    assert kept_zeros(2, device="cuda").device == world.device()


@declared_limit("taken from torch before activation", tiers=("T3",))
def check_name_in_a_container(world):
    assert kept_table["ones"](2, device="cuda").device == world.device()


@declared_limit("taken from torch before activation", tiers=("T3",))
def check_name_in_a_default_argument(world):
    assert with_default().device == world.device()


@declared_limit("taken from torch before activation", tiers=("T3",))
def check_unbound_method(world):
    assert kept_to(torch.ones(1), "cuda").device == world.device()


class Handled(torch.Tensor):
    table = {torch.zeros_like: "zeros_like", torch.Tensor.to: "to", torch.ones_like: "ones_like"}

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return cls.table.get(function, "unknown")


def check_handlers_of_functions(world):
    value = torch.ones(1).as_subclass(Handled)
    assert torch.zeros_like(value, device="cuda") == "zeros_like"
    assert torch.ones_like(value) == "ones_like"


@declared_limit("__torch_function__ table", tiers=("T3",))
def check_handlers_of_methods(world):
    assert torch.ones(1).as_subclass(Handled).to("cuda") == "to"


def check_functions_and_classes_of_torch_cuda(world):
    manual_seed_all(3)
    synchronize()
    assert isinstance(Stream(), torch.Stream)
    event = Event(enable_timing=True)
    event.record()
    assert event.query()
