"""``torch.device`` in all its spellings, and the class itself."""

from __future__ import annotations

import copy
import functools
import pickle

import torch
from world import declared_limit, only, raises


def check_bare_name(world):
    device = torch.device("cuda")
    assert (device.type, device.index) == (world.shown, None)


@only(backends=("sim",))
def check_name_with_index(world):
    assert torch.device("cuda:1") == torch.device("cuda", 1) == world.device(1)


@only(backends=("sim",))
def check_keywords(world):
    assert torch.device(type="cuda", index=1) == world.device(1)
    assert torch.device(type="cuda", index=1) == torch.device("cuda", index=1)
    assert torch.device(device="cuda:1") == world.device(1)


@declared_limit("keeps its index", tiers=("T1",), backends=("cpu",))
def check_index_zero_is_the_device_of_tensors(world):
    there = torch.ones(2, device="cuda").device
    spellings = (
        torch.device("cuda:0"),
        torch.device("cuda", 0),
        torch.device(type="cuda", index=0),
        torch.device(device="cuda:0"),
    )
    assert all(device == there for device in spellings), (spellings, there)


@only(backends=("sim",))
def check_integer_means_the_accelerator(world):
    assert torch.device(1) == world.device(1)
    assert torch.zeros(2, device=1).device == world.device(1)
    assert torch.zeros(2).to(1).device == world.device(1)


@only(backends=("cpu",))
@declared_limit("A bare number is no device", tiers=("T1",))
def check_number_means_the_one_device(world):
    assert torch.device(0) == world.device()
    assert torch.zeros(2, device=0).device == world.device()
    assert torch.tensor([1], device=0).device == world.device()
    assert torch.zeros(2).to(0).device == world.device()
    assert torch.zeros(2).new_zeros(3, device=0).shape == (3,)
    assert torch.zeros(2).new(3).shape == (3,)  # this number is a size
    assert torch.nn.Linear(2, 2).to(0).weight.device == world.device()


@only(backends=("cpu",))
@declared_limit("A bare number is no device", tiers=("T1",))
def check_number_in_compiled_code(world):
    result = torch.compile(lambda x: x.to(0) + 1, backend="eager", fullgraph=True)(torch.zeros(2))
    assert result.device == world.device()


def check_number_given_to_cuda(world):
    assert torch.zeros(2).cuda(0).device == world.device()


def check_device_of_a_device(world):
    device = torch.device("cuda")
    assert torch.device(device) == device


def check_other_names_are_untouched(world):
    assert str(torch.device("cpu")) == "cpu"
    assert str(torch.device("meta")) == "meta"
    assert torch.device("cpu", 0).index == 0
    assert str(torch.device("xpu:3")) == "xpu:3"


def check_own_name(world):
    assert torch.device(world.device_type).type == world.shown


def check_wrong_strings_are_named_in_the_error(world):
    for text in ("cuda:x", "cuda:", "cuda:00", "cuda:-1", "cuda:1:2", "cudax", "CUDA", " cuda"):
        assert text.strip() in raises(RuntimeError, torch.device, text), text


def check_wrong_string_in_a_factory(world):
    assert "cuda:x" in raises(RuntimeError, torch.zeros, 2, device="cuda:x")


def check_two_indices_are_refused(world):
    assert "must not include an index" in raises(RuntimeError, torch.device, "cuda:1", 0)


def check_wrong_types_are_refused(world):
    for value in (1.5, ["cuda"]):
        raises(TypeError, torch.device, value)


def check_printing(world):
    assert str(torch.device("cuda")) == world.shown
    assert repr(torch.device("cuda")) == f"device(type='{world.shown}')"
    assert str(torch.zeros(1, device="cuda:0").device) == world.text(0)


def check_repr_can_be_evaluated(world):
    device = torch.zeros(1, device="cuda").device
    assert eval(repr(device), {"device": torch.device}) == device


def check_tensor_printing(world):
    text = repr(torch.zeros(1, device="cuda"))
    suffix = "" if world.backend == "cpu" else f", device='{world.text(0)}'"
    assert text == f"tensor([0.]{suffix})"


def check_pickle_and_copies(world):
    device = torch.device("cuda:0")
    assert pickle.loads(pickle.dumps(device)) == device
    assert copy.copy(device) == copy.deepcopy(device) == device
    assert hash(copy.copy(device)) == hash(device)
    assert {device: 1}[torch.device("cuda:0")] == 1


def check_the_class_is_pytorchs_own(world):
    device = torch.device("cuda")
    assert type(device) is torch.device
    assert isinstance(device, torch.device)
    assert torch.device.__module__ == "torch"
    assert torch._C.device is torch.device
    assert torch.zeros(1).device.__class__ is torch.device


def check_annotations(world):
    def function(device: torch.device | None = None) -> torch.device | str: ...

    assert (str | torch.device | None) is not None
    assert function is not None


def check_single_dispatch(world):
    @functools.singledispatch
    def kind(value):
        return "other"

    kind.register(torch.device, lambda _value: "device")
    assert kind(torch.device("cuda")) == "device"


def check_the_class_cannot_be_subclassed_or_changed(world):
    raises(TypeError, type, "Sub", (torch.device,), {})
    raises(TypeError, setattr, torch.device, "extra", 1)


def check_a_string_subclass(world):
    class Name(str):
        __slots__ = ()

    assert torch.device(Name("cuda")).type == world.shown
    assert torch.zeros(1, device=Name("cuda")).device == world.device()
