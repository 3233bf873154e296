"""The import name ``flash_attn`` while a backend is active.

The package cannot be installed without CUDA's compiler, and half of the programs that use it have
no other path. A stand-in with its public functions is found under the name instead: its modules
are in the folder ``package``. A real ``flash_attn`` is never shadowed, and a namespace package of
that name (flash_attn 4 installs ``flash_attn.cute`` so) stays reachable.

Upstream: none; ``flash_attn`` is a third-party name. Can go when programs ask PyTorch instead.
"""

from __future__ import annotations

import sys
from email.message import Message
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType

VERSION = "2.8.4+cuda.morph"
"""The public interface is that of 2.8.4; the local part tells it from the real package."""
NAME = "flash_attn"
_FOLDER = Path(__file__).parent / "package"


class StandInFinder(DistributionFinder):
    """Finds the package where the other finders find none, or only a namespace.

    Args:
        place: What is on ``sys.meta_path`` for it, which is no other finder.
    """

    def __init__(self, place: object) -> None:
        self._place = place

    def forget(self) -> None:
        """Takes the stand-in's modules out of the table, so that a later import starts anew."""
        package = sys.modules.get(NAME)
        if getattr(package, "__file__", None) != str(_FOLDER / "__init__.py"):
            return
        for name in [*sys.modules]:
            if name == NAME or name.startswith(f"{NAME}."):
                del sys.modules[name]

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
            spec: Any = None if finder is self._place or not find else find(name, path, target)
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
            if finder is not self._place and find is not None and any(True for _ in find(context)):
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
