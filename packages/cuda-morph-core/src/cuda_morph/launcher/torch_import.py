"""Noticing the end of ``import torch`` where PyTorch does not call core's entry point.

That is so when cuda-morph runs from source without package metadata, and with
``TORCH_DEVICE_BACKEND_AUTOLOAD=0``. Otherwise this finder sees the same import and does nothing.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_TORCH = "torch"


class TorchFinder:
    """A finder that watches one module and lets all others pass.

    It stays until torch has been executed: libraries ask ``find_spec("torch")`` before they
    import it, so being asked is no sign of an import.

    Args:
        after: Called once, when torch has been executed.
    """

    def __init__(self, after: Callable[[], None]) -> None:
        self._after = after

    def install(self) -> None:
        """Puts the finder first."""
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Finds torch through the other finders and has its execution watched."""
        if name != _TORCH:
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
                sys.meta_path.remove(self)
                self._after()

        try:
            loader.exec_module = exec_module
        except AttributeError:
            return  # a loader with fixed attributes: the entry point is the only way
