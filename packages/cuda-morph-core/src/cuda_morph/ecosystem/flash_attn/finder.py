"""Finds the stand-in for ``flash_attn``, and its metadata, where there is no real one."""

from __future__ import annotations

import sys
from email.message import Message
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuda_morph.ecosystem.flash_attn.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType

NAME = "flash_attn"
_FOLDER = Path(__file__).parent / "package"


class StandInFinder(DistributionFinder):
    """Finds the package where the other finders find none, or only a namespace."""

    @staticmethod
    def made(module: ModuleType) -> bool:
        """Returns whether a module is the stand-in."""
        return getattr(module, "__file__", None) == str(_FOLDER / "__init__.py")

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Finds the package itself; Python finds its modules through its path."""
        if name != NAME:
            return None
        other = self._ask_others(name, path, target)
        portions: list[str] = []
        if other is not None:
            if other.origin is not None or other.submodule_search_locations is None:
                return None
            # A namespace has no code of its own that could be shadowed.
            portions = list(other.submodule_search_locations)
        return spec_from_file_location(
            NAME,
            _FOLDER / "__init__.py",
            submodule_search_locations=[str(_FOLDER), *portions],
        )

    def _ask_others(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in [*sys.meta_path]:
            find = getattr(finder, "find_spec", None)
            spec: Any = None if finder is self or not find else find(name, path, target)
            if isinstance(spec, ModuleSpec):
                return spec
        return None

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterable[Distribution]:
        """Finds metadata for the stand-in, so that version checks have an answer.

        Libraries ask for the version, and for the distribution of the import name, before they
        import. The version says what it is: ``+cuda.morph``.
        """
        wanted = getattr(context, "name", None)
        if wanted not in (None, NAME, "flash-attn") or self._has_real_distribution():
            return ()
        return (_StandInDistribution(),)

    def _has_real_distribution(self) -> bool:
        context = DistributionFinder.Context(name=NAME)
        for finder in [*sys.meta_path]:
            find = getattr(finder, "find_distributions", None)
            if finder is not self and find is not None and any(True for _ in find(context)):
                return True
        return False


class _StandInDistribution(Distribution):
    """What ``importlib.metadata`` says of the stand-in."""

    def read_text(self, filename: str) -> str | None:
        texts = {
            "METADATA": f"Metadata-Version: 2.1\nName: flash-attn\nVersion: {VERSION}\n"
            "Summary: Stand-in of cuda-morph for flash_attn\n",
            "top_level.txt": f"{NAME}\n",
        }
        return texts.get(filename)

    def locate_file(self, path: Any) -> Path:
        return _FOLDER.parent / str(path)

    @property
    def metadata(self) -> Any:
        message = Message()
        message["Metadata-Version"] = "2.1"
        message["Name"] = "flash-attn"
        message["Version"] = VERSION
        message["Summary"] = "Stand-in of cuda-morph for flash_attn"
        return message

    @property
    def files(self) -> None:
        """Nothing was installed."""
        return
