import pickle

import pytest
import torch
from torch.nn import functional

DRAWS = {
    "rand": lambda: torch.rand(5, device="sim"),
    "randn": lambda: torch.randn(5, device="sim"),
    "randint": lambda: torch.randint(0, 1000, (5,), device="sim"),
    "randperm": lambda: torch.randperm(50, device="sim"),
    "normal": lambda: torch.empty(5, device="sim").normal_(),
    "exponential": lambda: torch.empty(5, device="sim").exponential_(),
    "bernoulli": lambda: torch.full((50,), 0.5, device="sim").bernoulli(),
    "multinomial": lambda: torch.ones(50, device="sim").multinomial(5),
    "dropout": lambda: functional.dropout(torch.ones(50, device="sim")),
    "dropout2d": lambda: functional.dropout2d(torch.ones(1, 50, 1, 1, device="sim")),
    "native_dropout": lambda: torch.native_dropout(torch.ones(50, device="sim"), 0.5, True)[0],
    "rrelu": lambda: functional.rrelu(-torch.ones(50, device="sim"), training=True),
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_device_draws_from_its_own_generator(sim, name):
    draw = DRAWS[name]
    host = torch.get_rng_state()
    sim.manual_seed(11)
    first, second = draw(), draw()
    sim.manual_seed(11)
    assert torch.equal(draw(), first)
    assert not torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), host), "the host's numbers were disturbed"


def test_drawing_on_the_host_leaves_the_device_alone(sim):
    state = sim.get_rng_state()
    torch.rand(5)
    functional.dropout(torch.ones(5))
    assert torch.equal(sim.get_rng_state(), state)


def test_torch_manual_seed_seeds_every_device(sim):
    torch.manual_seed(3)
    first = [torch.rand(3, device=f"sim:{i}") for i in range(2)]
    torch.manual_seed(3)
    assert all(torch.equal(torch.rand(3, device=f"sim:{i}"), first[i]) for i in range(2))


def test_seeds(sim):
    sim.manual_seed(5)
    assert sim.initial_seed() == 5
    sim.manual_seed_all(6)
    assert [g.initial_seed() for g in sim.default_generators] == [6, 6]
    sim.seed()
    assert sim.initial_seed() != 6
    sim.seed_all()
    assert len({g.initial_seed() for g in sim.default_generators}) == 1


def test_states_go_out_and_in(sim):
    state = sim.get_rng_state("sim:1")
    numbers = torch.rand(4, device="sim:1")
    sim.set_rng_state(state, "sim:1")
    assert torch.equal(torch.rand(4, device="sim:1"), numbers)
    states = sim.get_rng_state_all()
    numbers = torch.rand(4, device="sim")
    sim.set_rng_state_all(states)
    assert torch.equal(torch.rand(4, device="sim"), numbers)


def test_own_generators(sim):
    generator = torch.Generator(device="sim").manual_seed(9)
    assert generator.device == torch.device("sim:0")
    numbers = torch.rand(4, device="sim", generator=generator)
    copy = pickle.loads(pickle.dumps(generator))
    assert torch.equal(
        torch.rand(4, device="sim", generator=generator),
        torch.rand(4, device="sim", generator=copy),
    )
    assert torch.equal(torch.rand(4, device="sim", generator=generator.manual_seed(9)), numbers)
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(4, device="sim", generator=torch.Generator())
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator"):
        torch.rand(4, generator=generator)


def test_fork_rng_restores_the_device(sim):
    state = sim.get_rng_state()
    with torch.random.fork_rng(devices=[0], device_type="sim"):
        torch.rand(5, device="sim")
        assert not torch.equal(sim.get_rng_state(), state)
    assert torch.equal(sim.get_rng_state(), state)
