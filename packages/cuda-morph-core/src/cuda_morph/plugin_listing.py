"""Listing of plugins: reads entry points and imports nothing.

Two distributions that claim one name are rivals and neither is used: which one came first on the
path would be an accident.
"""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cuda_morph.frozen_record import frozen_record
from cuda_morph.hookspecs import ENTRY_POINT_GROUP

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

CORE_DIST = "cuda-morph-core"

BUILTIN_PLUGINS = {"cpu": "cuda_morph.builtin.cpu"}
"""Plugins that are found even when core runs from source, without metadata."""

RESERVED_NAMES = frozenset({*BUILTIN_PLUGINS, "cuda"})
"""Names that no other distribution can take; ``cuda`` means PyTorch's own CUDA."""


_HEADER = re.compile(r"^(Name|Version):[ \t]*(\S.*?)\s*$", re.MULTILINE | re.IGNORECASE)


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
    found = {
        (entry.name, entry.value, plugins.dist): _candidate(entry, plugins)
        for plugins in _installed()
        for entry in plugins.entries
    }
    candidates = list(found.values())
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


class _Plugins(NamedTuple):
    """The plugins of one distribution."""

    dist: str
    version: str | None
    entries: tuple[metadata.EntryPoint, ...]


def _installed() -> Iterator[_Plugins]:
    """Yields what each distribution with plugins says of itself.

    ``metadata.entry_points`` parses the entry points of every installed project, and one that
    cannot be read hides all. Here each is looked at alone, and for our group only.
    """
    seen: set[str] = set()
    for dist in metadata.distributions():
        try:
            # The first distribution of a name on the path hides later ones, as on import.
            key = _key(dist)
            if key in seen:
                continue
            seen.add(key)
            entries = tuple(_entries(_entry_points_file(dist)))
            if not entries:
                continue
            name, version = _name_and_version(dist)
        except Exception:  # noqa: BLE001, S112 - whatever is wrong with it, it lists no plugin
            continue
        yield _Plugins(name, version, entries)


def _key(dist: metadata.Distribution) -> str:
    """Returns the name by which Python tells distributions apart, from the folder's name alone."""
    key = getattr(dist, "_normalized_name", None)  # what metadata.entry_points compares
    return key if isinstance(key, str) else normalised(dist.metadata["Name"]).replace("-", "_")


def _entry_points_file(dist: metadata.Distribution) -> str:
    """Returns the file's text, empty when there is none; a hundred projects are asked."""
    folder = getattr(dist, "_path", None)
    if not isinstance(folder, Path):  # in an archive, or found by somebody else's finder
        return dist.read_text("entry_points.txt") or ""
    try:
        with open(f"{folder}/entry_points.txt", "rb") as file:  # noqa: PTH123 - twice as fast
            content = file.read()
    except OSError:
        return ""
    return content.decode() if ENTRY_POINT_GROUP.encode() in content else ""


def _entries(text: str) -> Iterator[metadata.EntryPoint]:
    """Yields the entry points of our group; nothing else in the file is looked at."""
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]")
        elif section == ENTRY_POINT_GROUP and line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield metadata.EntryPoint(name.strip(), value.strip(), ENTRY_POINT_GROUP)


def _name_and_version(dist: metadata.Distribution) -> tuple[str, str | None]:
    """Reads two lines of the metadata; parsing all of it as a mail takes half a millisecond."""
    head = (dist.read_text("METADATA") or "").partition("\n\n")[0]
    found = {key.lower(): value for key, value in _HEADER.findall(head)}
    if "name" in found:
        return found["name"], found.get("version")
    return normalised(dist.metadata["Name"]), dist.version  # an error where there is no name


def _candidate(entry: metadata.EntryPoint, found: _Plugins) -> Candidate:
    return Candidate(
        name=entry.name,
        entry_point=entry,
        dist=found.dist,
        version=found.version,
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
