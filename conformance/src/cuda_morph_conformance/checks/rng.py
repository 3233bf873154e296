"""Random numbers on the device: seeds, states, generators, and drawing the same again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.expectations import (
    require_equal,
    require_raises,
    same_random_numbers,
    shown_type,
)
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from cuda_morph_conformance.subject import Subject

_SEED = ("rng.seed",)
_COUNT = 64


def draw(device: str = "cuda", **options: Any) -> list[float]:
    """Returns numbers drawn on a device."""
    import torch

    numbers: list[float] = torch.rand(_COUNT, device=device, **options).tolist()
    return numbers


@check("CM-RNG-001", level=Level.RUNS, requires=_SEED, since="1.0", devices=1)
def seeds_repeat(_subject: Subject) -> None:
    """torch.manual_seed and torch.cuda.manual_seed MUST make the device draw the same again.

    Fix: seed the default generator of the device module in ``manual_seed`` and ``manual_seed_all``.
    """
    import torch

    with same_random_numbers():
        for seed in (torch.manual_seed, torch.cuda.manual_seed, torch.cuda.manual_seed_all):
            seed(5)
            first, second = draw(), draw()
            require(first != second, f"after {seed.__module__}.{seed.__name__} draws do not differ")
            seed(5)
            again = [draw(), draw()]
            require(again == [first, second], f"{seed.__module__}.{seed.__name__} does not repeat")
            seed(6)
            require(draw() != first, f"{seed.__module__}.{seed.__name__}: two seeds draw the same")


@check("CM-RNG-002", level=Level.RUNS, requires=_SEED, since="1.0", devices=1)
def initial_seed_is_told(_subject: Subject) -> None:
    """initial_seed MUST be the seed that was set, and seed MUST set a new one.

    Fix: keep the seed in the generator and return it from ``current_seed``.
    """
    import torch

    with same_random_numbers():
        for seed in (77, 2**63 - 1, 0):
            torch.cuda.manual_seed(seed)
            require_equal(torch.cuda.initial_seed(), seed, f"initial_seed() after {seed}")
        first = draw()
        torch.cuda.seed()
        require(torch.cuda.initial_seed() != 0, "seed() set no new seed")
        require(draw() != first, "seed() changed no numbers")


@check("CM-RNG-003", level=Level.RUNS, requires=_SEED, since="1.0", devices=1)
def the_host_is_not_disturbed(subject: Subject) -> None:
    """Drawing on the device MUST NOT move the CPU's generator, nor torch.cuda.manual_seed seed it.

    Fix: draw from the device's generator in every kernel, never from the CPU's default one.
    """
    import torch

    if shown_type(subject) == "cpu":
        return
    with same_random_numbers():
        before = torch.get_rng_state()
        torch.cuda.manual_seed(3)
        draw()
        torch.randn(8, device="cuda")
        torch.nn.functional.dropout(torch.ones(8, device="cuda"))
        require(torch.equal(torch.get_rng_state(), before), "the CPU's generator has moved")
        torch.cuda.manual_seed(3)
        first = draw()
        torch.cuda.manual_seed(3)
        torch.rand(8)
        require(draw() == first, "drawing on the CPU moved the device's generator")


@check("CM-RNG-004", level=Level.RUNS, requires=("rng.seed_all",), since="1.0", devices=1)
def all_devices_are_seeded(subject: Subject) -> None:
    """manual_seed_all and torch.manual_seed MUST seed every device.

    Fix: seed each of ``default_generators`` in ``manual_seed_all``.
    """
    import torch

    with same_random_numbers():
        for seed in (torch.cuda.manual_seed_all, torch.manual_seed):
            seed(11)
            first = [draw(f"cuda:{index}") for index in range(subject.device_count)]
            seed(11)
            again = [draw(f"cuda:{index}") for index in range(subject.device_count)]
            require(first == again, f"{seed.__name__} does not repeat on every device")
        torch.cuda.manual_seed_all(12)
        seeds = [generator.initial_seed() for generator in torch.cuda.default_generators]
        require_equal(seeds, [12] * subject.device_count, "seeds of default_generators")


@check("CM-RNG-005", level=Level.RUNS, requires=("rng.seed_all", "device.multiple"), since="1.0",
       devices=2)  # fmt: skip
def devices_have_their_own_generators(_subject: Subject) -> None:
    """Seeding and drawing on one device MUST leave the generators of others alone.

    Fix: keep one generator per device, and seed only that of the current device in ``manual_seed``.
    """
    import torch

    with same_random_numbers():
        torch.cuda.manual_seed_all(3)
        expected = draw("cuda:1")
        torch.cuda.manual_seed_all(3)
        with torch.cuda.device(0):
            torch.cuda.manual_seed(9)
            draw("cuda:0")
        require(draw("cuda:1") == expected, "device 0 changed the numbers of device 1")


@check("CM-RNG-006", level=Level.TRAINS, requires=("rng.state",), since="1.0", devices=1)
def states_are_put_back(subject: Subject) -> None:
    """get_rng_state MUST be a byte tensor on the CPU that set_rng_state restores, mid-sequence.

    Fix: save seed and offset in the generator's state, not the seed alone.
    """
    import torch

    with same_random_numbers():
        for index in range(subject.device_count):
            name = f"cuda:{index}"
            for device in (index, name, torch.device("cuda", index)):
                torch.cuda.manual_seed_all(4)
                draw(name)
                state = torch.cuda.get_rng_state(device)
                require_equal((state.dtype, state.device.type), (torch.uint8, "cpu"), "the state")
                first = draw(name)
                require(first != draw(name), "draws do not differ")
                torch.cuda.set_rng_state(state, device)
                require(draw(name) == first, f"set_rng_state(state, {device!r}) does not restore")


@check("CM-RNG-007", level=Level.TRAINS, requires=("rng.state",), since="1.0", devices=1)
def all_states_are_put_back(subject: Subject) -> None:
    """get_rng_state_all MUST give a state per device, and set_rng_state_all restore each.

    Fix: answer from ``default_generators`` in the order of the devices.
    """
    import torch

    names = [f"cuda:{index}" for index in range(subject.device_count)]
    with same_random_numbers():
        states = torch.cuda.get_rng_state_all()
        require_equal(len(states), subject.device_count, "number of states")
        first = [draw(name) for name in names]
        torch.cuda.manual_seed_all(99)
        torch.cuda.set_rng_state_all(states)
        require([draw(name) for name in names] == first, "set_rng_state_all does not restore")


@check("CM-RNG-008", level=Level.RUNS, requires=("rng.generator",), since="1.0", devices=1)
def generators_are_independent(_subject: Subject) -> None:
    """An own generator MUST repeat by its seed, and neither move the default one nor follow it.

    Fix: use the generator that the kernel is given, and only without one the default.
    """
    import torch

    with same_random_numbers():
        torch.cuda.manual_seed(1)
        expected = draw()
        own = torch.Generator("cuda").manual_seed(3)
        torch.cuda.manual_seed(1)
        first = draw(generator=own)
        require(draw() == expected, "an own generator moved the default one")
        own.manual_seed(3)
        require(draw(generator=own) == first, "the own generator does not repeat by its seed")
        require_equal(own.initial_seed(), 3, "initial_seed() of the own generator")
        require(first != expected, "the own generator draws the numbers of another seed")


@check("CM-RNG-009", level=Level.RUNS, requires=("rng.generator",), since="1.0", devices=1)
def generators_have_states(_subject: Subject) -> None:
    """A generator's state MUST restore it in the middle of its sequence, and clone MUST copy it.

    Fix: implement ``get_state``, ``set_state`` and ``clone_impl`` of the device's generator.
    """
    import torch

    own = torch.Generator("cuda").manual_seed(3)
    draw(generator=own)
    state, twin = own.get_state(), torch.Generator("cuda")
    first = draw(generator=own)
    own.set_state(state)
    require(draw(generator=own) == first, "set_state does not restore")
    twin.set_state(state)
    require(draw(generator=twin) == first, "the state does not carry over to another generator")
    require(own.seed() != own.manual_seed(3).initial_seed(), "seed() set no new seed")


@check("CM-RNG-010", level=Level.RUNS, requires=("rng.generator", "device.mismatch"), since="1.0",
       devices=1)  # fmt: skip
def generators_of_other_devices_raise(_subject: Subject) -> None:
    """A CPU generator MUST be refused for device tensors, and a device generator for CPU tensors.

    Fix: check the generator's device with ``check_generator`` in each kernel.
    """
    import torch

    own, host = torch.Generator("cuda"), torch.Generator()
    require_raises(RuntimeError, lambda: draw(generator=host), what="a CPU generator on the device")
    require_raises(RuntimeError, lambda: draw("cpu", generator=own), what="the reverse")


@check("CM-RNG-011", level=Level.RUNS, requires=("rng.generator",), since="1.0", devices=1)
def every_sampler_takes_a_generator(_subject: Subject) -> None:
    """Every function that samples MUST take a generator, and repeat by its seed.

    Fix: register the sampling kernel that the message names, with its ``generator`` argument.
    """
    import torch

    chances = torch.full((_COUNT,), 0.5, device="cuda")
    samplers: dict[str, Callable[[Any], Tensor]] = {
        "rand": lambda g: torch.rand(_COUNT, device="cuda", generator=g),
        "randn": lambda g: torch.randn(_COUNT, device="cuda", generator=g),
        "randint": lambda g: torch.randint(99, (_COUNT,), device="cuda", generator=g),
        "randperm": lambda g: torch.randperm(_COUNT, device="cuda", generator=g),
        "normal": lambda g: torch.normal(chances, 1.0, generator=g),
        "bernoulli": lambda g: torch.bernoulli(chances, generator=g),
        "multinomial": lambda g: torch.multinomial(chances, 8, replacement=True, generator=g),
        "uniform_": lambda g: chances.clone().uniform_(1, 2, generator=g),
        "normal_": lambda g: chances.clone().normal_(generator=g),
        "exponential_": lambda g: chances.clone().exponential_(generator=g),
        "random_": lambda g: chances.clone().random_(0, 99, generator=g),
    }
    own = torch.Generator("cuda")
    for name, sample in samplers.items():
        first, second = (sample(own.manual_seed(5)).tolist() for _ in range(2))
        require(first == second, f"{name} does not repeat by the generator's seed")
        require(first != sample(own).tolist(), f"{name} does not move the generator")


@check("CM-RNG-012", level=Level.RUNS, requires=("rng.fork",), since="1.0", devices=1)
def forks_restore(subject: Subject) -> None:
    """torch.random.fork_rng MUST restore the generators of the CPU and of the named devices.

    Fix: give the device module ``get_rng_state`` and ``set_rng_state`` by index.
    """
    import torch

    devices = list(range(subject.device_count))
    with same_random_numbers():
        torch.manual_seed(4)
        expected = [draw(f"cuda:{index}") for index in devices], torch.rand(3).tolist()
        torch.manual_seed(4)
        with torch.random.fork_rng(devices=devices, device_type="cuda"):
            torch.manual_seed(5)
            drawn = [draw(f"cuda:{index}") for index in devices]
        require(drawn != expected[0], "the seed inside the block did nothing")
        again = [draw(f"cuda:{index}") for index in devices], torch.rand(3).tolist()
        require(again == expected, "numbers after the block differ from those without it")


@check("CM-RNG-013", level=Level.TRAINS, requires=("rng.deterministic",), since="1.0", devices=1)
def dropout_repeats(_subject: Subject) -> None:
    """Dropout MUST drop the same elements by the same seed, about its share of them, and scale.

    Fix: draw the mask from the device's generator, and divide by one minus the share.
    """
    import torch

    x = torch.ones(10_000, device="cuda")
    with same_random_numbers():
        torch.cuda.manual_seed(9)
        first, second = (torch.nn.functional.dropout(x, 0.25) for _ in range(2))
        torch.cuda.manual_seed(9)
        again = torch.nn.functional.dropout(x, 0.25)
    require(torch.equal(first, again), "the same seed gives another mask")
    require(not torch.equal(first, second), "two calls give the same mask")
    kept = int((first != 0).sum().item())
    require(7_200 < kept < 7_800, f"{kept} of 10000 elements were kept, expected 7500")  # noqa: PLR2004
    require(bool(torch.isclose(first.max(), x[0] / 0.75).item()), f"scaled to {first.max().item()}")
    require(
        torch.equal(torch.nn.functional.dropout(x, 0.25, training=False), x), "evaluation drops"
    )


@check("CM-RNG-014", level=Level.TRAINS, requires=("rng.deterministic",), since="1.0", devices=1)
def initialisation_repeats(_subject: Subject) -> None:
    """A module that is initialised on the device MUST have the same weights by the same seed.

    Fix: register ``uniform_`` and ``normal_`` for the device, with its generator.
    """
    import torch
    from torch import nn

    with same_random_numbers():
        made = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            model = nn.Sequential(nn.Linear(8, 8), nn.Embedding(4, 8)).to("cuda")
            for module in model:
                nn.init.xavier_uniform_(module.weight)
            nn.init.normal_(model[0].bias, 0.0, 0.02)
            made.append(torch.cat([value.flatten() for value in model.parameters()]))
    require(torch.equal(made[0], made[1]), "the same seed gives other weights")
    require(not torch.equal(made[0], made[2]), "another seed gives the same weights")


@check("CM-RNG-015", level=Level.RUNS, requires=_SEED, since="1.0", devices=1)
def numbers_have_their_distribution(_subject: Subject) -> None:
    """Numbers MUST have the mean and variance of their distribution, and not repeat in a row.

    Fix: advance the generator by as many numbers as a kernel used.
    """
    import torch

    count, own = 100_000, torch.Generator("cuda").manual_seed(1)
    uniform = torch.rand(count, device="cuda", generator=own)
    normal = torch.randn(count, device="cuda", generator=own)
    coins = torch.bernoulli(torch.full((count,), 0.3, device="cuda"), generator=own)
    for what, drawn, mean, variance in (
        ("rand", uniform, 0.5, 1 / 12),
        ("randn", normal, 0.0, 1.0),
        ("bernoulli(0.3)", coins, 0.3, 0.21),
    ):
        seen = drawn.mean().item(), drawn.var().item()
        near = abs(seen[0] - mean) < 0.02 and abs(seen[1] - variance) < 0.03  # noqa: PLR2004 - six standard errors and more
        require(near, f"{what} has mean {seen[0]:.4f} and variance {seen[1]:.4f}")
    require(len(set(uniform[:1000].tolist())) > 990, "rand repeats numbers")  # noqa: PLR2004
