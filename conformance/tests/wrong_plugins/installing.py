"""Makes a faulty plugin visible to Python as an installed distribution."""

from __future__ import annotations

from pathlib import Path

from fault import FAULTS
from faulty_plugin import NAME

HERE = Path(__file__).parent

_SOURCE = """
from faulty_plugin import hooks

globals().update(hooks({fault!r}))
"""
_METADATA = """Metadata-Version: 2.4
Name: cuda-morph-wrong
Version: 1.0
{requires}
"""


def install(folder: Path, fault: str, source: str = _SOURCE) -> str:
    """Write the plugin as pip would.

    Args:
        folder: An empty folder.
        fault: Name of the fault; empty for a plugin without one.
        source: Text of its module.

    Returns:
        What ``PYTHONPATH`` must begin with.
    """
    package = {
        "requires": ("cuda-morph-core<0.11,>=0.10",),
        "entry_points": "",
        "before": "",
    }
    if fault and FAULTS[fault].kind == "package":
        package |= FAULTS[fault].apply()
    own = "" if fault and FAULTS[fault].kind == "package" else fault
    module = "plugin_cuda_morph_wrong"
    (folder / f"{module}.py").write_text(package["before"] + source.format(fault=own))
    info = folder / "cuda_morph_wrong-1.0.dist-info"
    info.mkdir()
    needs = "\n".join(f"Requires-Dist: {line}" for line in package["requires"])
    info.joinpath("METADATA").write_text(_METADATA.format(requires=needs))
    info.joinpath("entry_points.txt").write_text(
        f"[cuda_morph.plugins]\n{NAME} = {module}\n{package['entry_points']}"
    )
    return f"{folder}:{HERE}"
