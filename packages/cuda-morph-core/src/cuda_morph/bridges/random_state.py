"""``torch.random.fork_rng`` on the CPU.

Upstream: ``torch/random.py`` takes ``cuda`` for its default device type and asks the module of that
type for random states; ``torch.cpu`` has none, because the CPU's state is kept elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

if TYPE_CHECKING:
    from cuda_morph.patching import Journal


def apply(journal: Journal) -> None:
    """Lets ``torch.cpu`` answer for the state of the CPU's generator."""
    journal.update_mapping(
        vars(torch.cpu), {"get_rng_state": _get_rng_state, "set_rng_state": _set_rng_state}
    )


def _get_rng_state(device: Any = None) -> Any:
    del device
    return torch.default_generator.get_state()


def _set_rng_state(state: Any, device: Any = None) -> None:
    del device
    torch.default_generator.set_state(state)
