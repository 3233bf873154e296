"""What a simulated adapter is made from: the records of the plugin whose adapter it stands for.

Nothing here imports torch, so a request can be judged before PyTorch is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cuda_morph import plugins
from cuda_morph.errors import PluginError

if TYPE_CHECKING:
    from cuda_morph.records import AdapterSurface, Backend, CollectiveBackend, Personality

BUILT_IN_TYPES = frozenset({"cpu", "cuda", "xpu", "hpu", "mps", "mtia", "ipu", "meta", "maia"})
"""Device types that PyTorch has itself: it lets nobody give them to another device."""

MARK = "(simulated)"
"""Ends every name of a simulated card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pose:
    """The records of one plugin that decide how the simulated device answers."""

    backend: Backend
    surface: AdapterSurface
    personality: Personality
    collectives: tuple[CollectiveBackend, ...] = ()

    @property
    def device_type(self) -> str:
        """Device type as PyTorch prints it."""
        return self.backend.device_type

    @property
    def adapter_name(self) -> str:
        """Name of the adapter's module."""
        return self.backend.adapter_module or self.surface.module

    @property
    def device_name(self) -> str:
        """Name of the card; it says that it is none."""
        name = self.personality.device_name.removesuffix(MARK).strip()
        return f"{name} {MARK}"


def read_pose(plugin: str) -> Pose:
    """Read the records of a plugin.

    Args:
        plugin: Its name.

    Returns:
        What the simulation needs of it.

    Raises:
        PluginError: The plugin lacks a personality or a surface, or broke the contract.
    """
    backend = plugins.get_plugin(plugin).backend
    if backend is None:
        raise PluginError(f"Plugin {plugin!r} cannot be used.", hint="See cuda-morph plugins.")
    return Pose(
        backend=backend,
        surface=_record("cuda_morph_surface", plugin),
        personality=_record("cuda_morph_personality", plugin),
        collectives=tuple(_records("cuda_morph_collectives", plugin)),
    )


def _record(hook: str, plugin: str) -> Any:
    found = _records(hook, plugin)
    if not found:
        raise PluginError(
            f"Plugin {plugin!r} cannot be simulated: its hook {hook} says nothing.",
            hint="The simulation has the names that the adapter's surface lists, and no others.",
        )
    return found[0]


def _records(hook: str, plugin: str) -> list[Any]:
    return [record for _, record in plugins.collect(hook, plugin=plugin)]
