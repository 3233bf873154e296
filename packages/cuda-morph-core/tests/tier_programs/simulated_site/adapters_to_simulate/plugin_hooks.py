"""What the two plugins have in common."""

from __future__ import annotations

from typing import Any

from cuda_morph.records import (
    AdapterSurface,
    Backend,
    CollectiveBackend,
    Detection,
    DeviceMapping,
    Personality,
    SurfaceName,
)

CLASSES = frozenset({"Stream", "Event", "StreamContext", "device", "device_of"})


def refuse() -> None:
    """Stands for the import of an adapter that is not there."""
    raise ImportError("the real adapter must not be loaded in a simulation")


def backend(name: str) -> Backend:
    """The identity of a plugin; names of everything else are derived from the plugin's."""
    return Backend(
        name=name,
        display_name=f"Test {name}",
        vendor="Test",
        device_type=f"{name}card",
        adapter_module=f"torch_{name}",
        collective_backend=f"{name}ccl",
        visible_devices_env=f"{name.upper()}_VISIBLE_DEVICES",
    )


def absent() -> Detection:
    """No card is there."""
    return Detection(available=False, reason="there is no such card")


def mapping(name: str) -> DeviceMapping:
    """The device module answers; the real adapter cannot be loaded."""
    return DeviceMapping(
        target=f"{name}card",
        module=f"torch.{name}card",
        init=refuse,
        compute_capability=(8, 0),
    )


def collectives(name: str) -> CollectiveBackend:
    """The adapter registers its own backend."""
    return CollectiveBackend(name=f"{name}ccl", device_types=(f"{name}card",))


def surface(name: str, names: list[SurfaceName]) -> AdapterSurface:
    """The adapter's names."""
    return AdapterSurface(
        module=f"torch.{name}card", version="1.2.3 (test)", source="this test", names=tuple(names)
    )


def personality(**fields: Any) -> Personality:
    """How the adapter answers."""
    return Personality(device_name="Testcard 1", source="this test", **fields)
