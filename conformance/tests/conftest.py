"""Plugins for the suite's own tests: written as files, found as installed ones are found."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# Test modules are not on the import path; made_certificate.py is shared by several.
sys.path.insert(0, str(Path(__file__).parent))

GOOD = Path(__file__).with_name("good_plugin.py").read_text()

REQUIRES = ("cuda-morph-core<0.11,>=0.10", 'torch-mychip>=1.0; extra == "runtime"')

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Make a plugin visible to this process and its children, as pip would."""

    def write(
        source: str = GOOD,
        *,
        name: str = "mychip",
        dist: str = "cuda-morph-mychip",
        requires: tuple[str, ...] = REQUIRES,
        entry_points: str = "",
    ) -> None:
        module = "plugin_" + dist.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{dist.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        needs = "".join(f"Requires-Dist: {line}\n" for line in requires)
        info.joinpath("METADATA").write_text(
            f"Metadata-Version: 2.4\nName: {dist}\nVersion: 1.0\nProvides-Extra: runtime\n{needs}"
        )
        info.joinpath("entry_points.txt").write_text(
            f"[cuda_morph.plugins]\n{name} = {module}\n{entry_points}"
        )

    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    return write
