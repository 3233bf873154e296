"""Random numbers: seeds, states and generators."""

from __future__ import annotations

import torch


def draws(**keywords):
    return torch.rand(4, device="cuda", **keywords).tolist()


def check_seeds_repeat(world):
    for seed in (torch.manual_seed, torch.cuda.manual_seed, torch.cuda.manual_seed_all):
        seed(5)
        first = draws()
        assert draws() != first
        seed(5)
        assert draws() == first, seed


def check_different_seeds_differ(world):
    torch.cuda.manual_seed(1)
    first = draws()
    torch.cuda.manual_seed(2)
    assert draws() != first


def check_states(world):
    for device in ("cuda", "cuda:0", 0, torch.device("cuda")):
        state = torch.cuda.get_rng_state(device)
        first = draws()
        torch.cuda.set_rng_state(state, device)
        assert draws() == first, device


def check_states_of_all_devices(world):
    states = torch.cuda.get_rng_state_all()
    assert len(states) == world.devices
    first = draws()
    torch.cuda.set_rng_state_all(states)
    assert draws() == first


def check_initial_seed(world):
    torch.cuda.manual_seed(77)
    assert torch.cuda.initial_seed() == 77


def check_generator(world):
    generator = torch.Generator("cuda")
    assert isinstance(generator, torch.Generator)
    assert generator.device.type == world.shown
    generator.manual_seed(3)
    first = draws(generator=generator)
    generator.manual_seed(3)
    assert draws(generator=generator) == first


def check_generator_spellings(world):
    for made in (
        torch.Generator(device="cuda"),
        torch.Generator("cuda:0"),
        torch.Generator(torch.device("cuda")),
    ):
        assert made.device.type == world.shown
    assert torch.Generator().device.type == "cpu"


def check_default_generators(world):
    assert len(torch.cuda.default_generators) == world.devices


def check_fork(world):
    torch.cuda.manual_seed(4)
    expected = draws()
    torch.cuda.manual_seed(4)
    with torch.random.fork_rng(devices=[0], device_type="cuda"):
        draws()
    assert draws() == expected


def check_fork_of_everything(world):
    torch.manual_seed(4)
    expected = draws()
    torch.manual_seed(4)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        draws()
    assert draws() == expected


def check_recomputing_draws_the_same(world):
    from torch.utils.checkpoint import checkpoint

    layer = torch.nn.Dropout(0.5)
    for reentrant in (True, False):
        value = torch.ones(64, device="cuda", requires_grad=True)
        result = checkpoint(lambda x: layer(x) * x, value, use_reentrant=reentrant)
        result.sum().backward()
        assert torch.equal(value.grad != 0, result != 0), reentrant


def check_dropout_is_repeatable(world):
    layer = torch.nn.Dropout(0.5).cuda()
    value = torch.ones(16, device="cuda")
    torch.cuda.manual_seed(9)
    first = layer(value).tolist()
    torch.cuda.manual_seed(9)
    assert layer(value).tolist() == first
