"""Listing of plugins: reads entry points and imports nothing.

Two distributions that claim one name are rivals and neither is used: which one came first on the
path would be an accident.
"""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import metadata
from typing import TYPE_CHECKING

from cuda_morph.frozen_record import frozen_record
from cuda_morph.hookspecs import ENTRY_POINT_GROUP

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

CORE_DIST = "cuda-morph-core"

BUILTIN_PLUGINS = {"cpu": "cuda_morph.builtin.cpu"}
"""Plugins that are found even when core runs from source, without metadata."""

RESERVED_NAMES = frozenset({*BUILTIN_PLUGINS, "cuda"})
"""Names that no other distribution can take; ``cuda`` means PyTorch's own CUDA."""


@frozen_record
class Candidate:
    """A plugin that was found and not yet loaded."""

    name: str
    entry_point: metadata.EntryPoint
    dist: str
    version: str | None = None
    builtin: bool = False
    rivals: tuple[str, ...] = ()
    """Other distributions that claim the name."""
    block: str = ""
    """Why it must not be loaded; empty when it may."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from every other candidate."""
        return (self.name, self.entry_point.value, self.dist)

    def load(self) -> object:
        """Returns the module or object that the entry point names, importing it."""
        return self.entry_point.load()


def normalised(name: str) -> str:
    """Returns a plugin or distribution name in the form used to compare names."""
    return re.sub(r"[-_.]+", "-", name).strip().lower()


def list_candidates(
    allow: Collection[str] = (), block: Collection[str] = ()
) -> tuple[Candidate, ...]:
    """Lists every plugin of this environment, sorted by name.

    Args:
        allow: Plugin or distribution names; when not empty all others are blocked, except the
            built-in ones.
        block: Plugin or distribution names that are blocked.

    Returns:
        One candidate for each name and distribution. Blocked ones are no rivals of others.
    """
    found = {(entry.name, entry.value, dist): entry for entry, dist in _entries()}
    candidates = [_candidate(entry, dist) for (_, _, dist), entry in found.items()]
    listed = {candidate.name for candidate in candidates if candidate.builtin}
    candidates += [
        Candidate(
            name=name,
            entry_point=metadata.EntryPoint(name=name, value=value, group=ENTRY_POINT_GROUP),
            dist=CORE_DIST,
            builtin=True,
        )
        for name, value in BUILTIN_PLUGINS.items()
        if name not in listed
    ]
    judged = [_with_block(candidate, allow, block) for candidate in candidates]
    rivals = [_with_rivals(candidate, judged) for candidate in judged]
    return tuple(sorted(rivals, key=lambda candidate: (candidate.name, candidate.dist)))


def _entries() -> Iterator[tuple[metadata.EntryPoint, str]]:
    """Yields the entry points of plugins, each with the name of its distribution.

    ``metadata.entry_points`` parses those of every installed project, and one that cannot be read
    hides all. Here each is looked at alone, and parsed when it names our group: half the time.
    """
    seen: set[str] = set()
    for dist in metadata.distributions():
        try:
            if ENTRY_POINT_GROUP not in (dist.read_text("entry_points.txt") or ""):
                continue
            name = dist.metadata["Name"]
            # The first distribution of a name on the path hides later ones, as on import.
            entries = tuple(metadata.distribution(name).entry_points)
        except Exception:  # noqa: BLE001, S112 - whatever is wrong with it, it lists no plugin
            continue
        if normalised(name) not in seen:
            seen.add(normalised(name))
            yield from ((entry, name) for entry in entries if entry.group == ENTRY_POINT_GROUP)


def _dist_version(entry: metadata.EntryPoint) -> str | None:
    try:
        return entry.dist.version if entry.dist else None
    except Exception:  # noqa: BLE001 - likewise
        return None


def _candidate(entry: metadata.EntryPoint, dist: str) -> Candidate:
    return Candidate(
        name=entry.name,
        entry_point=entry,
        dist=dist,
        version=_dist_version(entry),
        builtin=BUILTIN_PLUGINS.get(entry.name) == entry.value,
    )


def _with_block(candidate: Candidate, allow: Collection[str], block: Collection[str]) -> Candidate:
    names = {normalised(candidate.name), normalised(candidate.dist)}
    if names & {normalised(name) for name in block}:
        return replace(candidate, block="blocked by CUDA_MORPH_BLOCK")
    allowed = {normalised(name) for name in allow}
    if allowed and not candidate.builtin and not names & allowed:
        return replace(candidate, block="not in the list of CUDA_MORPH_PLUGINS")
    return candidate


def _with_rivals(candidate: Candidate, others: Iterable[Candidate]) -> Candidate:
    if candidate.builtin:
        return candidate
    rivals = {
        f"{other.dist} {other.version or ''}".strip()
        for other in others
        if other is not candidate and other.name == candidate.name and not other.block
    }
    if candidate.name in RESERVED_NAMES:
        rivals.add(CORE_DIST)
    return replace(candidate, rivals=tuple(sorted(rivals)))
