"""What vLLM and its plugins say of themselves: versions, entry points, platforms, requirements.

Nothing of vLLM is imported: all of it is metadata. Its own platforms are the files below
``vllm/platforms``; every build brings all of them, and its version says what it was built for.
"""

from __future__ import annotations

import os
import re
from importlib import metadata
from typing import TYPE_CHECKING

from cuda_morph.diagnosis.entry_points import in_group
from cuda_morph.frozen_record import frozen_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.requirements import Requirement

SERVER = "vllm"
PLATFORMS, GENERAL = "vllm.platform_plugins", "vllm.general_plugins"
SELECTION = "VLLM_PLUGINS"
"""vLLM loads only the entry points that this variable names."""
_OWN = re.compile(r"vllm/platforms/([a-z0-9]+)\.py")
_NO_PLATFORM = frozenset({"interface"})


@frozen_record
class Registered:
    """An entry point for vLLM."""

    group: str
    name: str
    target: str
    distribution: str
    version: str
    loaded: bool
    """False when `SELECTION` leaves it out."""


def version_of(distribution: str) -> str | None:
    """Returns the version of what is installed under a name, ``None`` without it."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def release(version: str | None) -> tuple[int, ...] | None:
    """Returns the first two numbers of a version, ``None`` where there are none."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(version or "").release[:2]
    except InvalidVersion:
        return None


def built_for(version: str) -> str:
    """Returns what a version of vLLM says of its build, such as ``cpu``; mostly nothing."""
    return version.partition("+")[2].lower()


def registered() -> Iterator[Registered]:
    """Yields every entry point for vLLM, platforms first."""
    chosen = os.environ.get(SELECTION)
    wanted = None if chosen is None else set(chosen.split(","))
    for group in (PLATFORMS, GENERAL):
        for entry in sorted(in_group(group), key=lambda one: one.name):
            yield Registered(
                group=group,
                name=entry.name,
                target=entry.value,
                distribution=entry.dist.name if entry.dist else "?",
                version=entry.dist.version if entry.dist else "?",
                loaded=wanted is None or entry.name in wanted,
            )


def own_platforms() -> tuple[str, ...]:
    """Lists the platforms that the installed vLLM brings along.

    Returns:
        Their names, such as ``cuda`` and ``cpu``; none without vLLM.
    """
    try:
        files = metadata.files(SERVER) or []
    except metadata.PackageNotFoundError:
        return ()
    found = {match[1] for file in files if (match := _OWN.fullmatch(file.as_posix()))}
    return tuple(sorted(found - _NO_PLATFORM))


def requirements(distribution: str) -> Iterator[Requirement]:
    """Yields what a distribution asks for here, extras left out.

    Args:
        distribution: Its name; one that is not installed asks for nothing.

    Yields:
        Its requirements; one that cannot be read is left to pip.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        texts = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return
    for text in texts:
        try:
            wanted = Requirement(text)
        except InvalidRequirement:
            continue
        if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
            yield wanted
