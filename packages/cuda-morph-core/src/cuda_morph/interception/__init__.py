"""Interception: how the string ``cuda`` reaches the accelerator. One tier is chosen per process.

T0  compiled: hooks the device-string constructor of libc10 (package cuda-morph-native)
T1  ctypes: changes one entry of libc10's device table; no compiler needed
T3  Python wrappers around the functions that take a device; any platform, native view only

Below is what a tier is given and what it must do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from cuda_morph.frozen_record import frozen_record

if TYPE_CHECKING:
    from cuda_morph.patching import Journal
    from cuda_morph.views import ViewPolicy


@frozen_record
class Target:
    """The device that answers to the name ``cuda``."""

    device_type: str
    """The name that the parser knows, e.g. ``npu``."""
    type_id: int
    """c10::DeviceType of it."""
    device: Any
    """``torch.device(device_type)``."""
    policy: ViewPolicy

    @property
    def masked(self) -> bool:
        """Whether its devices are to print as ``cuda``.

        Only the name of the out-of-tree slot can be exchanged; the CPU stays ``cpu``.
        """
        from cuda_morph.torch_facts import PRIVATE_USE_ONE

        return self.policy.view == "cuda" and self.type_id == PRIVATE_USE_ONE


class Tier(Protocol):
    """One way of intercepting device strings."""

    name: str

    def obstacle(self, target: Target) -> str:
        """Returns why this tier cannot be used here, or an empty string."""
        ...

    def apply(self, target: Target, journal: Journal) -> None:
        """Intercepts, with every change in `journal`.

        Raises:
            TierError: It does not work in this process; the caller rolls back.
        """
        ...

    def limits(self, target: Target) -> tuple[str, ...]:
        """Returns what this tier does not give, one sentence each."""
        ...
