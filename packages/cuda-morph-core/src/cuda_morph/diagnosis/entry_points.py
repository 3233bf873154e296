"""Entry points of any group, also where a distribution has a list that cannot be read.

``metadata.entry_points`` reads the lists of all distributions at once: one that cannot be read
hides all others, and since PyTorch asks in this way, it makes ``import torch`` fail.
"""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph.diagnosis.finding import Finding, Level
from cuda_morph.hook_calls import describe
from cuda_morph.plugin_listing import normalised

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.metadata import EntryPoint


def in_group(group: str) -> tuple[EntryPoint, ...]:
    """Lists the entry points of a group.

    Args:
        group: For example ``torch.backends``.

    Returns:
        What can be read of them.
    """
    return tuple(
        entry
        for _, entries in _lists()
        if not isinstance(entries, Exception)
        for entry in entries
        if entry.group == group
    )


def look() -> Iterator[Finding]:
    """Looks at the lists of all distributions.

    Yields:
        One finding for each that cannot be read.
    """
    for name, entries in _lists():
        if isinstance(entries, Exception):
            text = f"entry_points.txt of {name} cannot be read, so import torch fails"
            yield Finding(
                id=f"metadata.{name}",
                level=Level.FAIL,
                message=f"{text}: {' '.join(describe(entries).split())}",
                fix=f"Repair or uninstall {name}; TORCH_DEVICE_BACKEND_AUTOLOAD=0 helps for now.",
            )


def _lists() -> Iterator[tuple[str, tuple[EntryPoint, ...] | Exception]]:
    """Yields each distribution's name with its entry points, or what reading them raised."""
    seen: set[str] = set()
    for dist in metadata.distributions():
        name = distribution_name(dist)
        # The first of a name on the path hides later ones, as for Python.
        if normalised(name) in seen:
            continue
        seen.add(normalised(name))
        try:
            yield name, tuple(dist.entry_points)
        except Exception as error:  # noqa: BLE001 - foreign files; Python has no error of its own
            yield name, error


def distribution_name(dist: metadata.Distribution) -> str:
    """Returns a distribution's name, or that of its folder where its metadata cannot be read."""
    try:
        name = dist.metadata["Name"]
    except Exception:  # noqa: BLE001 - foreign files
        name = None
    folder = getattr(dist, "_path", None)
    return str(name or (Path(folder).name if folder else "a distribution without a name"))
