"""Default generators of device modules that make them late, or keep them to themselves."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from cuda_morph.errors import BackendUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

_FUNCTIONS = ("get_rng_state", "set_rng_state", "manual_seed", "device")
"""What a module must have; every adapter known here does. Not each has ``seed``."""

_SEED_BYTES = 7
"""Seeds are signed 64-bit numbers; this keeps random ones positive."""


def can_be_found(module: Any) -> bool:
    """Tells whether `LateGenerators` may find generators that the module does not list yet.

    Args:
        module: The device module.

    Returns:
        True when it can be initialised, or has functions that stand for a generator.
    """
    return callable(getattr(module, "init", None)) or _has_functions(module)


def _has_functions(module: Any) -> bool:
    return all(hasattr(module, name) for name in _FUNCTIONS)


class LateGenerators(Sequence[Any]):
    """The default generators of a device module, fetched at first use.

    Adapters fill ``default_generators`` when the device is initialised. That must not happen at
    activation: a process that has an initialised device cannot be forked.

    Args:
        module: The device module.
        device_count: Counts its devices.
    """

    def __init__(self, module: Any, device_count: Callable[[], int]) -> None:
        self._module = module
        self._count = device_count
        self._found: tuple[Any, ...] | None = None

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Any, ...]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._fetch()[index]

    def __len__(self) -> int:
        return self._count()

    def __repr__(self) -> str:
        return repr(self._fetch())

    def _fetch(self) -> tuple[Any, ...]:
        if self._found is None:
            self._found = self._listed() or self._made()
        return self._found

    def _listed(self) -> tuple[Any, ...]:
        """Returns what the module lists once it is initialised, if that is one for each device."""
        initialise = getattr(self._module, "init", None)
        if initialise is not None:
            initialise()
        listed = tuple(getattr(self._module, "default_generators", ()))
        return listed if len(listed) >= self._count() else ()

    def _made(self) -> tuple[Any, ...]:
        if not _has_functions(self._module):
            raise BackendUnavailableError(
                f"{self._module.__name__} lists no default generator for each device.",
                hint="The plugin must supply a device runtime with default_generators().",
            )
        return tuple(FunctionGenerator(self._module, index) for index in range(self._count()))


class FunctionGenerator:
    """A default generator that the device module offers through functions only.

    It answers what ``torch.cuda``'s own functions ask of a generator. It is no `torch.Generator`,
    so it cannot be given to an operator.

    Args:
        module: The device module.
        index: Of the device.
    """

    def __init__(self, module: Any, index: int) -> None:
        self._module = module
        self._index = index
        self._seed: int | None = None

    @property
    def device(self) -> Any:
        """The generator's device."""
        import torch

        return torch.device(torch._C._get_accelerator().type, self._index)

    def get_state(self) -> Any:
        """Returns the state as a tensor of bytes."""
        return self._module.get_rng_state(self._index)

    def set_state(self, state: Any) -> None:
        """Puts a state back.

        Args:
            state: What `get_state` returned.
        """
        self._module.set_rng_state(state, self._index)

    def manual_seed(self, seed: int) -> FunctionGenerator:
        """Fixes the numbers of this device.

        Args:
            seed: The seed.

        Returns:
            The generator itself.
        """
        with self._module.device(self._index):
            self._module.manual_seed(seed)
        self._seed = int(seed)
        return self

    def seed(self) -> int:
        """Chooses a seed by chance and returns it."""
        seed = int.from_bytes(os.urandom(_SEED_BYTES), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """Returns the seed in force, or the last one given where the module does not tell."""
        own = getattr(self._module, "initial_seed", None)
        if own is not None:
            with self._module.device(self._index):
                return int(own())
        import torch

        return torch.initial_seed() if self._seed is None else self._seed
