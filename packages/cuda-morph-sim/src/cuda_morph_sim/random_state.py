"""Random numbers of the device module: seeds and generator states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    import torch


def random_functions(native: Any) -> dict[str, Any]:
    """Make the functions of ``torch.cuda.random`` over the device's generators.

    Args:
        native: The native half of the device.

    Returns:
        Functions by name, and ``default_generators``.
    """
    generators = tuple(native.default_generator(i) for i in range(native.device_count()))
    return (
        {"default_generators": generators}
        | _seeds(native, generators)
        | _states(native, generators)
    )


def _seeds(native: Any, generators: tuple[torch.Generator, ...]) -> dict[str, Any]:
    def current() -> torch.Generator:
        return generators[native.current_device()]

    def manual_seed(seed: int) -> None:
        """Seed the current device."""
        current().manual_seed(int(seed))

    def manual_seed_all(seed: int) -> None:
        """Seed every device."""
        for generator in generators:
            generator.manual_seed(int(seed))

    def seed() -> None:
        """Seed the current device with a random number."""
        current().seed()

    def seed_all() -> None:
        """Seed every device with the same random number."""
        manual_seed_all(generators[0].seed())

    def initial_seed() -> int:
        """Return the seed of the current device."""
        return int(current().initial_seed())

    return {
        "manual_seed": manual_seed,
        "manual_seed_all": manual_seed_all,
        "seed": seed,
        "seed_all": seed_all,
        "initial_seed": initial_seed,
    }


def _states(native: Any, generators: tuple[torch.Generator, ...]) -> dict[str, Any]:
    def get_rng_state(device: Any = None) -> torch.Tensor:
        """Return the generator state of a device."""
        return generators[native.index_of(device)].get_state()

    def get_rng_state_all() -> list[torch.Tensor]:
        """Return the generator states of all devices."""
        return [generator.get_state() for generator in generators]

    def set_rng_state(new_state: torch.Tensor, device: Any = None) -> None:
        """Set the generator state of a device."""
        generators[native.index_of(device)].set_state(new_state)

    def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
        """Set the generator states of all devices."""
        for generator, state in zip(generators, new_states, strict=False):
            generator.set_state(state)

    return {
        "get_rng_state": get_rng_state,
        "get_rng_state_all": get_rng_state_all,
        "set_rng_state": set_rng_state,
        "set_rng_state_all": set_rng_state_all,
    }
