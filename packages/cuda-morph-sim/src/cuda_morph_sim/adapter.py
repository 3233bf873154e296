"""Loading the simulated device in the place of one plugin's adapter."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import TYPE_CHECKING, Any

from cuda_morph.records import Detection, Simulation
from cuda_morph_sim.pose import BUILT_IN_TYPES, Pose, read_pose

if TYPE_CHECKING:
    from types import ModuleType

    from cuda_morph_sim.adapter_imports import AdapterFinder

_adapters: dict[str, ModuleType] = {}
_finder: AdapterFinder | None = None


def simulation_of(plugin: str, detection: Detection) -> Simulation:
    """Offer to simulate one plugin's device.

    Args:
        plugin: Name of the plugin.
        detection: Whether the simulated device itself can be had.

    Returns:
        The simulation; its detection says why not where it cannot be had.

    Raises:
        PluginError: The plugin's records are missing or broken.
    """
    pose = read_pose(plugin)
    reason = _obstacle(pose)
    if reason:
        detection = Detection(available=False, reason=reason)
    return Simulation(
        detection=detection, load=functools.partial(load, plugin), unload=stop_imports
    )


def load(plugin: str) -> ModuleType:
    """Load the simulated device as one plugin's adapter.

    Args:
        plugin: Name of the plugin.

    Returns:
        What stands for the adapter's module.

    Raises:
        MorphError: The device is taken, cannot be built, or a setting is not understood.
    """
    from cuda_morph_sim import loader

    pose = read_pose(plugin)
    device_module = loader.load_as(
        pose.device_type,
        lambda native: _make(pose, native),
        owner=plugin,
        visible=pose.backend.visible_devices_env,
    )
    if plugin not in _adapters:
        from cuda_morph_sim.adapter_module import make_adapter

        _adapters[plugin] = make_adapter(pose, device_module)
    _start_imports(pose, _adapters[plugin])
    return _adapters[plugin]


def loaded_pose() -> Pose | None:
    """Return whose adapter the device of this process stands for.

    Returns:
        Its records, ``None`` for the plain device and before anything was loaded.
    """
    plugin = next(iter(_adapters), None)
    return None if plugin is None else read_pose(plugin)


def stop_imports() -> None:
    """Answer imports of the adapter's name no more."""
    global _finder
    if _finder is not None:
        _finder.remove()
        _finder = None


def _start_imports(pose: Pose, adapter: ModuleType) -> None:
    global _finder
    from cuda_morph_sim import adapter_imports

    if _finder is None and adapter_imports.wanted():
        if adapter_imports.is_installed(pose.adapter_name):
            return
        _finder = adapter_imports.AdapterFinder(pose.adapter_name, adapter)
        _finder.install()


def _make(pose: Pose, native: Any) -> ModuleType:
    from cuda_morph_sim import adapter_module, dtype_limits

    dtype_limits.apply(pose, native)
    module = adapter_module.make_device_module(pose, native)
    adapter_module.publish(module)
    _register_collectives(pose)
    return module


def _register_collectives(pose: Pose) -> None:
    """Register the adapter's own backends, as it would itself; a plugin may bring others."""
    from cuda_morph_sim import collectives, process_group

    for record in pose.collectives:
        if record.create is None:
            process_group.register(
                record.name, pose.device_type, ops=record.ops, dtypes=record.dtypes
            )
    collectives.serve_by_gloo(pose.device_type)


def _obstacle(pose: Pose) -> str:
    """Say why the device cannot stand for the adapter in this process; empty when it can."""
    kind = pose.device_type
    if kind in BUILT_IN_TYPES:
        return f"PyTorch itself has the device type {kind!r}, which no other device can be given"
    top = pose.adapter_name.partition(".")[0]
    if top in sys.modules and top != "torch":
        from cuda_morph_sim.adapter_imports import is_simulated

        if not is_simulated(sys.modules[top]):
            return f"the real {top} is imported in this process"
    if "torch" not in sys.modules:
        return ""
    loader = importlib.import_module("cuda_morph_sim.loader")
    reason: str = loader.obstacle(kind, pose.backend.name)
    return reason
