"""``import torch_mychip`` answered by the simulated adapter: for tests only, and on request.

Off unless `IMPORTS_VARIABLE` is set, only while the simulation is active, and never where a real
module of that name could be imported.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

from cuda_morph_sim.adapter_module import modules_of
from cuda_morph_sim.settings import IMPORTS_VARIABLE, read_flag

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

_ORIGIN = "simulated by cuda-morph-sim"


def is_installed(name: str) -> bool:
    """Tell whether a real module of a name can be imported here.

    Args:
        name: A module's name; the top-level one is looked for.

    Returns:
        True also when looking for it fails: then something of it is there.
    """
    top = name.partition(".")[0]
    present = sys.modules.get(top)
    if present is not None:
        return not is_simulated(present)
    try:
        return importlib.util.find_spec(top) is not None
    except (ImportError, ValueError, AttributeError):
        return True


def is_simulated(module: object) -> bool:
    """Tell whether a module was made here.

    Args:
        module: Any module.

    Returns:
        Whether it is a part of a simulated adapter.
    """
    return getattr(getattr(module, "__spec__", None), "origin", None) == _ORIGIN


class AdapterFinder(Loader):
    """A finder that knows the modules of one simulated adapter and no others.

    Args:
        name: Name of the adapter's top-level module.
        adapter: The module that stands for it.
    """

    def __init__(self, name: str, adapter: ModuleType) -> None:
        self._modules = {
            f"{name}.{below}".rstrip("."): module for below, module in modules_of(adapter).items()
        }

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find one of the modules."""
        del path, target
        if name not in self._modules:
            return None
        return ModuleSpec(name, self, origin=_ORIGIN, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module that is there already."""
        return self._modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module is complete."""

    def install(self) -> None:
        """Answer imports from now on, after every other finder."""
        if self not in sys.meta_path:
            sys.meta_path.append(self)

    def remove(self) -> None:
        """Answer no more, and let nobody find what was imported."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name, module in self._modules.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


def wanted() -> bool:
    """Tell whether imports were asked for.

    Returns:
        The value of `IMPORTS_VARIABLE`.

    Raises:
        SettingError: It is neither yes nor no.
    """
    return read_flag(IMPORTS_VARIABLE, os.environ.get(IMPORTS_VARIABLE, ""))
