"""Findings on versions of vLLM, its platform plugins, and the PyTorch below them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_morph.diagnosis.finding import Finding, Level
from cuda_morph.diagnosis.serving_metadata import (
    PLATFORMS,
    SERVER,
    release,
    requirements,
    version_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from packaging.requirements import Requirement

    from cuda_morph.diagnosis.serving_metadata import Registered

_SIDE = frozenset({"torchaudio", "torchcodec", "torchvision"})
"""vLLM and plugins ask for them, and import them for models with pictures or sound only."""
_FIX = "Install versions that belong together; the vendor publishes which."


def look(version: str | None, registered: Iterable[Registered]) -> Iterator[Finding]:
    """Compares what vLLM and its plugins ask for with what is installed.

    Args:
        version: Of vLLM; ``None`` where it is not installed.
        registered: Its entry points.

    Yields:
        One finding for each requirement that is not met, and for each platform plugin of another
        release of vLLM.
    """
    registered = tuple(registered)
    plugins = {one.distribution for one in registered} - {SERVER}
    for owner in ([SERVER] if version else []) + sorted(plugins):
        yield from _unmet(owner)
    if version is not None:
        yield from _releases(version, registered)


def _unmet(owner: str) -> Iterator[Finding]:
    side: list[str] = []
    source = f"metadata of {owner}"
    for wanted in requirements(owner):
        # Other requirements are for pip check; these decide whether the device is found.
        if not _name(wanted).startswith(("torch", SERVER)):
            continue
        installed = version_of(wanted.name)
        if installed is not None and wanted.specifier.contains(installed, prereleases=True):
            continue
        what = f"{installed} is installed" if installed else "it is not installed"
        text = f"{wanted.name}{wanted.specifier} ({what})"
        if _name(wanted) in _SIDE:
            side.append(text)
            continue
        id_, text = f"requires.{owner}.{wanted.name}", f"{owner} needs {text}"
        yield Finding(id=id_, level=Level.FAIL, message=text, fix=_FIX, source=source)
    if side:
        text = f"{owner} needs for models with pictures or sound: {', '.join(side)}"
        id_, fix = f"requires.{owner}.media", "Install them if you serve such models."
        yield Finding(id=id_, level=Level.WARN, message=text, fix=fix, source=source)


def _name(wanted: Requirement) -> str:
    return wanted.name.lower().replace("_", "-")


def _releases(version: str, registered: Iterable[Registered]) -> Iterator[Finding]:
    """Plugins follow vLLM's releases, and few of them say so in their metadata."""
    platforms = {one.distribution: one.version for one in registered if one.group == PLATFORMS}
    for plugin, own in sorted(platforms.items()):
        if any(_name(wanted) == SERVER for wanted in requirements(plugin)):
            continue
        if release(own) != release(version):
            text = f"{plugin} {own} does not say which vLLM it is made for; {version} is installed"
            yield Finding(
                id=f"release.{plugin}",
                level=Level.WARN,
                message=text,
                fix="Ask the vendor which versions belong together: often those of equal number.",
                source=f"metadata of {plugin}",
            )
