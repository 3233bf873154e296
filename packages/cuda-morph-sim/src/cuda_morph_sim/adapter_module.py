"""The device module and the adapter's module, with the names that the adapter's surface lists.

A name of the surface that means something here does it, under the adapter's parameter names. A name
without a meaning exists and says so when it is used. What the adapter lacks is missing.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cuda_morph_sim.adapter_calls import (
    AbsentValue,
    absent_class,
    absent_function,
    with_parameters,
)
from cuda_morph_sim.adapter_classes import amp_functions, classes, with_methods
from cuda_morph_sim.adapter_functions import meanings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cuda_morph.records import SurfaceName
    from cuda_morph_sim.pose import Pose

_SAME_AS_ABOVE = frozenset({"memory", "random", "streams", "utils", "graphs", "device", "amp"})
"""Submodules that define what the module above them exports: equal names mean the same."""


def make_device_module(pose: Pose, native: Any) -> ModuleType:
    """Make the adapter's device module.

    Args:
        pose: The plugin's records.
        native: The native half of the device.

    Returns:
        A module with exactly the names of the surface.
    """
    return _Builder(pose, native).build()


def make_adapter(pose: Pose, device_module: ModuleType) -> ModuleType:
    """Make what stands for the adapter's top-level module.

    Args:
        pose: The plugin's records.
        device_module: The device module.

    Returns:
        A module whose version says that it is simulated.
    """
    top = _module(pose.adapter_name, f"Simulated: stands for {pose.adapter_name}.")
    vars(top)["__version__"] = simulated_version(pose.surface.version)
    vars(top)[pose.device_type] = device_module
    functions = pose.personality.functions() if pose.personality.functions is not None else {}
    for name, function in functions.items():
        _place(top, name, function)
    return top


def simulated_version(version: str) -> str:
    """Mark a version as that of a simulation.

    Args:
        version: Version of the adapter whose names were read; a remark may follow it.

    Returns:
        The version with ``simulated`` in its local part.
    """
    plain = (version.split() or ["0"])[0]
    return f"{plain}.simulated" if "+" in plain else f"{plain}+simulated"


class _Builder:
    """Makes one device module, name by name."""

    def __init__(self, pose: Pose, native: Any) -> None:
        self._root = f"torch.{pose.device_type}"
        self._names = {item.name: item for item in pose.surface.names}
        self._classes = classes(pose, native)
        self._meanings = meanings(pose, native, self._classes["Stream"]) | amp_functions(pose)
        self._made: dict[str, Any] = {}

    def build(self) -> ModuleType:
        """Return the finished module, known to Python with its submodules."""
        root = _module(self._root, "The simulated adapter's device module.")
        for item in sorted(self._names.values(), key=lambda item: item.name.count(".")):
            if item.kind != "method":
                _place(root, item.name, self._object(item))
        return root

    def _object(self, item: SurfaceName) -> Any:
        full = f"{self._root}.{item.name}"
        if item.kind == "module":
            return _module(full, "Part of the simulated adapter.")
        if item.kind == "class":
            return self._class(item, full)
        meaning = self._meaning(item.name)
        if meaning is None:
            return absent_function(full) if item.kind == "function" else AbsentValue(full)
        if item.kind == "function" and callable(meaning) and not isinstance(meaning, type):
            return self._function(item, meaning, full)
        return meaning

    def _function(self, item: SurfaceName, meaning: Callable[..., Any], full: str) -> Any:
        """Return one function for equal meanings: submodules export what they define."""
        key = f"{item.name.rpartition('.')[2]}{item.parameters}"
        if key not in self._made:
            self._made[key] = with_parameters(meaning, item.parameters, full)
        return self._made[key]

    def _class(self, item: SurfaceName, full: str) -> type:
        short = item.name.rpartition(".")[2]
        place = item.name.split(".")[0]
        wanted = f"amp.{short}" if place == "amp" else short
        made = self._classes.get(wanted)
        if made is None:
            meaning = self._meaning(item.name)
            made = meaning if isinstance(meaning, type) else absent_class(full)
        methods = (
            name
            for name, other in self._names.items()
            if other.kind == "method" and name.rpartition(".")[0] == item.name
        )
        return with_methods(
            made, {name.rpartition(".")[2]: f"{self._root}.{name}" for name in methods}
        )

    def _meaning(self, name: str) -> Any:
        folder, _, short = name.rpartition(".")
        if folder and folder.split(".")[0] not in _SAME_AS_ABOVE:
            return None
        return self._meanings.get(short)


def _module(name: str, text: str) -> ModuleType:
    module = ModuleType(name, text)
    vars(module)["__path__"] = []
    return module


def _place(root: ModuleType, name: str, value: Any) -> None:
    """Put a value below a module under a dotted name, making modules on the way."""
    *folders, last = name.split(".")
    place = root
    for folder in folders:
        below = vars(place).get(folder)
        if below is None:
            below = _module(f"{place.__name__}.{folder}", "Part of the simulated adapter.")
            vars(place)[folder] = below
        if isinstance(below, type):
            return  # what a class holds came with the class
        place = below
    if not isinstance(value, ModuleType) or last not in vars(place):
        setattr(place, last, value)


def modules_of(root: ModuleType) -> Mapping[str, ModuleType]:
    """List a module made here with the modules below it.

    Args:
        root: The module.

    Returns:
        Modules by their dotted name relative to the root; the root is the empty name.
    """
    return dict(_walk(root, ""))


def _walk(module: ModuleType, name: str) -> Iterable[tuple[str, ModuleType]]:
    yield name, module
    for key, value in list(vars(module).items()):
        if isinstance(value, ModuleType):
            yield from _walk(value, f"{name}.{key}".lstrip("."))


def publish(root: ModuleType) -> None:
    """Let ``import`` and pickling find a device module and its parts.

    Args:
        root: The device module.
    """
    for name, module in modules_of(root).items():
        sys.modules[f"{root.__name__}.{name}".rstrip(".")] = module
