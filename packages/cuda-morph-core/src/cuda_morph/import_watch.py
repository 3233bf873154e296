"""Acting when a module has been imported, without importing it.

PyTorch's compilers load late; PyTorch itself is imported by the program that is run.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from importlib.machinery import ModuleSpec
    from importlib.metadata import Distribution
    from types import ModuleType


def after_import(name: str, act: Callable[[], None]) -> Callable[[], None]:
    """Calls `act` once the module is there: now if it is loaded, else when it has been executed.

    Args:
        name: Full module name.
        act: Called once; an error in it fails the import.

    Returns:
        A function that stops waiting.
    """
    if name in sys.modules and not _is_being_imported(name):
        act()
        return lambda: None
    finder = _ModuleFinder(name, act)
    sys.meta_path.insert(0, finder)
    return finder.remove


def _is_being_imported(name: str) -> bool:
    spec = getattr(sys.modules[name], "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


class _ModuleFinder:
    """A finder that watches one module and lets all others pass.

    It stays until the module has been executed: being asked for a spec is no sign of an import.
    """

    def __init__(self, name: str, act: Callable[[], None]) -> None:
        self._name = name
        self._act = act

    def remove(self) -> None:
        """Stops watching."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Finds the module through the other finders and has its execution watched."""
        if name != self._name:
            return None
        for finder in [*sys.meta_path]:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = (
                None if finder is self or not find else find(name, path, target)
            )
            if spec is not None:
                self._watch(spec.loader)
                return spec
        return None

    def _watch(self, loader: Any) -> None:
        """Extends this one loader; its class, and the loader after the import, stay as they are."""
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            execute(module)
            if self in sys.meta_path:
                self.remove()
                self._act()

        with contextlib.suppress(AttributeError):  # a loader with fixed attributes
            loader.exec_module = exec_module


class FinderOnDemand:
    """Stands on ``sys.meta_path`` for a finder that is made when one of its names is asked for.

    Args:
        names: The import name and the spellings of its distribution.
        make: Called once, with this object, and returns the finder.
    """

    def __init__(self, names: tuple[str, ...], make: Callable[[object], Any]) -> None:
        self._names = names
        self._make = make
        self.made: Any = None

    def _finder(self) -> Any:
        if self.made is None:
            self.made = self._make(self)
        return self.made

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Passes on what is asked about its import name."""
        if name not in self._names:
            return None
        spec: ModuleSpec | None = self._finder().find_spec(name, path, target)
        return spec

    def find_distributions(self, context: Any = None) -> Iterable[Distribution]:
        """Passes on what is asked about its distribution, or about all."""
        if getattr(context, "name", None) not in (None, *self._names):
            return ()
        found: Iterable[Distribution] = self._finder().find_distributions(context)
        return found
