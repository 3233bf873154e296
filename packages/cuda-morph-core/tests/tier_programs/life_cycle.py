"""Activation and its end: everything or nothing, and back."""

from __future__ import annotations

import pickle
import sys
from contextlib import contextmanager

import torch
from namespaces import differences, picture
from torch import zeros
from world import only, raises

import cuda_morph
from cuda_morph.errors import ActivationError, AlreadyActiveError, TierError

ADD = torch.add


def activate(world, **options):
    return cuda_morph.activate(world.backend, **{"view": world.view, **options})


@contextmanager
def exchanged(owner, name, value):
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def failing(error):
    def fail(*_arguments, **_keywords):
        raise error

    return fail


def without_cuda():
    """What PyTorch says of its own accord, without cuda-morph."""
    return {
        "device": str(torch.device("cuda:1")),
        "available": torch.cuda.is_available(),
        "count": torch.cuda.device_count(),
        "zeros": raises(Exception, torch.zeros, 1, device="cuda"),
        "cuda": raises(Exception, torch.ones(1).cuda),
        "is_cuda": torch.ones(1).is_cuda,
        "stream": raises(Exception, torch.cuda.Stream),
        "synchronize": raises(Exception, torch.cuda.synchronize),
        "wrong": raises(RuntimeError, torch.device, "cudax"),
    }


def check_activation_imports_no_compiler(world):
    with activate(world):
        pass
    assert "torch._dynamo" not in sys.modules
    assert "torch._inductor" not in sys.modules


def check_everything_is_as_before(world):
    before = picture()
    with activate(world):
        assert torch.zeros(1, device="cuda").device == world.device()
        assert torch.cuda.device_count() == world.devices
    assert differences(before) == []


def check_pytorch_answers_as_before(world):
    before = without_cuda()
    with activate(world):
        torch.ones(1).cuda()
    assert without_cuda() == before


@only(tiers=("T0", "T1"))
def check_bystanders_are_the_very_same(world):
    before = {owner: dict(vars(owner)) for owner in (torch, torch.nn.functional, torch.fft)}
    with activate(world):
        for owner, names in before.items():
            changed = [name for name, value in names.items() if vars(owner)[name] is not value]
            # The plan cache of cuFFT is asked under names of torch itself.
            assert [name for name in changed if not name.startswith("_cufft_")] == []
        assert torch.Tensor.to is torch._C.TensorBase.to


@only(tiers=("T3",))
def check_only_functions_with_devices_are_wrapped(world):
    before = dict(vars(torch))
    with activate(world):
        changed = {name for name, value in before.items() if vars(torch)[name] is not value}
        changed = {name for name in changed if not name.startswith("_cufft_")}
        assert {"zeros", "tensor", "asarray"} <= changed
        assert not changed & {"add", "mm", "Tensor", "device", "Generator", "Stream", "load"}
        for name in changed:
            assert getattr(torch, name) == before[name]
            assert {before[name]: 1}[getattr(torch, name)] == 1


def check_classes_are_the_very_same(world):
    classes = (torch.device, torch.Tensor, torch.Generator, torch.Stream, torch.Event)
    early = torch.cuda.is_available, torch.cuda.synchronize, torch.cuda.device_count
    with activate(world):
        assert (torch.device, torch.Tensor, torch.Generator, torch.Stream, torch.Event) == classes
        assert (torch.cuda.is_available, torch.cuda.synchronize, torch.cuda.device_count) == early
        assert torch.add is ADD


def check_nested_activations_are_counted(world):
    first = activate(world)
    assert activate(world) is first
    cuda_morph.deactivate()
    assert cuda_morph.is_active()
    assert torch.zeros(1, device="cuda").device == world.device()
    cuda_morph.deactivate()
    assert not cuda_morph.is_active()
    cuda_morph.deactivate()
    assert not cuda_morph.is_active()


def check_another_view_is_refused_while_active(world):
    other = {"native": "cuda", "cuda": "native"}[world.view]
    with activate(world):
        raises(AlreadyActiveError, activate, world, view=other)
        assert cuda_morph.info().view == world.view
    assert not cuda_morph.is_active()


def check_a_failing_bridge_takes_everything_back(world):
    from cuda_morph.bridges import serialization

    with activate(world):
        pass
    before = picture()
    for error in (RuntimeError("on purpose"), KeyError("on purpose")):
        with exchanged(serialization, "apply", failing(error)):
            message = raises(ActivationError, activate, world)
            assert "on purpose" in message
            assert "rolled back" in message
        assert differences(before) == []
        assert not cuda_morph.is_active()
    with activate(world):
        assert torch.zeros(1, device="cuda").device == world.device()


def check_an_interrupt_takes_everything_back(world):
    from cuda_morph.bridges import serialization

    before = picture()
    with exchanged(serialization, "apply", failing(KeyboardInterrupt())):
        raises(KeyboardInterrupt, activate, world)
    assert differences(before) == []


def check_a_failing_tier_takes_everything_back(world):
    from cuda_morph.interception import choice

    before = picture()
    with exchanged(choice, "_prove", failing(TierError("on purpose"))):
        message = raises(TierError, activate, world)
        assert world.tier in message
        assert "on purpose" in message
    assert differences(before) == []


@only(tiers=("T0", "T1"))
def check_one_view_after_the_other(world):
    for view in ("native", "cuda", "native"):
        with activate(world, view=view):
            masked = view == "cuda" and world.backend != "cpu"
            shown = "cuda" if masked else world.device_type
            assert torch.zeros(1, device="cuda").device.type == shown
            assert torch.cuda.is_available() is (view == "cuda")


@only(tiers=("T3",), backends=("sim",))
def check_the_cuda_view_is_refused(world):
    before = picture()
    message = raises(cuda_morph.MorphError, activate, world, view="cuda")
    assert "CM-E13" in message
    assert "native view" in message
    assert differences(before) == []


def check_info_says_what_is_in_force(world):
    with activate(world) as activation:
        info = cuda_morph.info()
        assert (info.tier, info.view, info.backend) == (world.tier, world.view, world.backend)
        assert info.limits == list(activation.limits)
        assert bool(activation.limits) or world.tier != "T3"
    assert cuda_morph.info().tier is None


@only(tiers=("T3",))
def check_wrappers_that_outlive_the_activation(world):
    with activate(world):
        kept = torch.zeros
        method = torch.Tensor.to
        globals()["imported_late"] = torch.full
    assert kept(2).tolist() == [0, 0]
    assert raises(Exception, kept, 1, device="cuda") == raises(
        Exception, torch.zeros, 1, device="cuda"
    )
    assert method(torch.ones(1), "cpu").device.type == "cpu"
    assert globals()["imported_late"] is torch.full
    assert pickle.loads(pickle.dumps(kept)) is torch.zeros


@only(tiers=("T3",))
def check_wrappers_can_be_pickled_and_copied(world):
    import copy

    with activate(world):
        assert pickle.loads(pickle.dumps(torch.zeros)) is torch.zeros
        assert copy.deepcopy({"create": torch.zeros})["create"] is torch.zeros
        assert zeros is torch.zeros


@only(tiers=("T3",))
def check_a_name_that_the_user_exchanged_stays_so(world):
    global ones
    with activate(world):
        ones = "mine"
    assert ones == "mine"


def check_toggling_while_threads_work(world):
    from toggling import toggle_under_threads

    rounds = 60 if world.tier == "T3" else 1000 if world.backend == "cpu" else 300
    failures, iterations = toggle_under_threads(lambda: activate(world), rounds, world)
    assert failures == []
    assert iterations > rounds
