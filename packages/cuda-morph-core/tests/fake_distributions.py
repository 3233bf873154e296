"""Real ``dist-info`` folders on a path of their own: discovery is tested without installing."""

from __future__ import annotations

import importlib
import sys
import textwrap
from importlib import metadata
from typing import TYPE_CHECKING

from cuda_morph import environment, plugins
from cuda_morph.hookspecs import ENTRY_POINT_GROUP

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

HEADER = """
from cuda_morph import records
from cuda_morph.hookspecs import hookimpl
from cuda_morph.records import *
from cuda_morph.records import Support, Treatment
"""

BACKEND = """
@hookimpl
def cuda_morph_backend():
    return Backend(name={name!r}, display_name={name!r}, vendor="Test", device_type="fake",
                   adapter_module=None{more})
"""

DETECT = """
@hookimpl
def cuda_morph_detect():
    return Detection({detection})
"""


def source(
    name: str,
    *,
    more: str = "",
    detection: str = "available=True, device_count=2",
    extra: str = "",
) -> str:
    """A plugin that works, with more fields of its backend and more code where asked."""
    backend = BACKEND.format(name=name, more=f", {more}" if more else "")
    return HEADER + backend + DETECT.format(detection=detection) + textwrap.dedent(extra)


class FakeSite:
    """A folder on ``sys.path`` into which plugins are put as if installed."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.monkeypatch = monkeypatch
        self.modules: list[str] = []
        for variable in environment.VARIABLES:
            monkeypatch.delenv(variable.name, raising=False)
        monkeypatch.setattr(plugins, "_listing", None)
        monkeypatch.syspath_prepend(str(root))

    def add(
        self,
        name: str,
        code: str | None = None,
        *,
        dist: str | None = None,
        version: str = "1.0",
        attribute: str = "",
        module: str = "",
    ) -> str:
        """Writes a module and the metadata of a distribution; returns the module's name."""
        dist = dist or f"cuda-morph-{name}"
        module = module or f"fake_{dist}_{name}".replace("-", "_")
        file = self.root / f"{module.replace('.', '/')}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(source(name) if code is None else code)
        info = self.root / f"{dist.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: {version}\n")
        value = f"{module}:{attribute}" if attribute else module
        (info / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\n{name} = {value}\n")
        self.modules.append(module)
        self.changed()
        return module

    def changed(self) -> None:
        """Makes the next look at the folder see what is there now."""
        importlib.invalidate_caches()
        self.monkeypatch.setattr(plugins, "_listing", None)

    def only_fakes(self) -> None:
        """Hides plugins that are really installed here; core's own stays."""

        find, folder = metadata.distributions, [str(self.root)]
        self.monkeypatch.setattr(metadata, "distributions", lambda: find(path=folder))

    def row(self, name: str, *, detect: bool = False) -> plugins.PluginRow:
        """The row of the only plugin of that name, as a listing of all gives it."""
        rows = [row for row in plugins.discover(detect=detect) if row.name == name]
        assert len(rows) == 1, rows
        return rows[0]

    def close(self) -> None:
        """Forgets the modules that were imported from here."""
        for module in self.modules:
            sys.modules.pop(module, None)
            sys.modules.pop(module.partition(".")[0], None)
