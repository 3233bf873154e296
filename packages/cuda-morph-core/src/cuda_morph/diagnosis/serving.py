"""Whether vLLM can run here: what is installed, registered, and asked for by whom.

Nothing of vLLM is imported: versions, requirements and entry points are metadata. Its own platforms
are the files below ``vllm/platforms``.
"""

from __future__ import annotations

import os
import re
from importlib import metadata
from typing import TYPE_CHECKING, Any

from cuda_morph.diagnosis import contained
from cuda_morph.diagnosis.finding import Finding, Level
from cuda_morph.frozen_record import frozen_record
from cuda_morph.plugin_status import USABLE
from cuda_morph.plugins import collect, discover, get_plugin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.metadata import EntryPoint

    from cuda_morph.plugin_status import PluginRow

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


@frozen_record
class Note:
    """What is known of vLLM on one backend."""

    backend: str
    platform: str
    """The platform that serves it; empty when none is installed."""
    quantization: tuple[str, ...] = ()
    """Methods that the plugin names with a source about vLLM."""
    source: str = ""


@frozen_record
class Readiness:
    """The whole answer."""

    version: str | None
    registered: tuple[Registered, ...]
    notes: tuple[Note, ...]
    findings: tuple[Finding, ...]

    @property
    def ready(self) -> bool:
        """Whether nothing is known that stands in the way."""
        return all(finding.level is not Level.FAIL for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Returns the answer as JSON-ready values."""
        from dataclasses import asdict

        return {
            "ready": self.ready,
            "version": self.version,
            "registered": [asdict(one) for one in self.registered],
            "backends": [asdict(one) for one in self.notes],
            "findings": [one.as_dict() for one in self.findings],
        }


def examine(
    backend: str | None = None, *, full: bool = False, seconds: float = contained.SECONDS
) -> Readiness:
    """Examines this installation for vLLM.

    Args:
        backend: Backend that vLLM is meant to run on.
        full: Asks each platform plugin, in a child process, whether it is active here.
        seconds: Time for each.

    Returns:
        What was found.

    Raises:
        UnknownBackendError: There is no such plugin.
    """
    rows = [row for row in discover() if row.status in USABLE]
    if backend is not None:
        rows = [get_plugin(backend)]
    version, registered = _version(SERVER), tuple(_registered())
    notes = tuple(_note(row, registered) for row in rows)
    findings = [_server(version), *_requirements(version, registered), *_platforms(registered)]
    if backend is not None and version is not None:
        findings.append(_served(notes[0]))
    if full:
        names = [one.name for one in registered if one.group == PLATFORMS and one.loaded]
        findings += [
            _asked(outcome) for outcome in contained.run("platform", names, seconds=seconds)
        ]
    return Readiness(version=version, registered=registered, notes=notes, findings=tuple(findings))


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _registered() -> Iterator[Registered]:
    chosen = os.environ.get(SELECTION)
    wanted = None if chosen is None else {name.strip() for name in chosen.split(",")}
    for group in (PLATFORMS, GENERAL):
        entries: Iterable[EntryPoint] = metadata.entry_points(group=group)
        for entry in sorted(entries, key=lambda one: one.name):
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


def _note(row: PluginRow, registered: Iterable[Registered]) -> Note:
    device = row.backend.device_type if row.backend else row.name
    # A vendor whose PyTorch answers to CUDA's name is not served by vLLM's platform for CUDA.
    names = {row.name} if device == "cuda" else {row.name, device}
    platform = next(
        (
            f"{one.name} of {one.distribution} {one.version}"
            for one in registered
            if one.group == PLATFORMS and names & _words(f"{one.name} {one.distribution}")
        ),
        "",
    )
    own = names & set(own_platforms())
    platform = platform or (f"{min(own)} of vLLM itself" if own else "")
    records = [
        record
        for _, record in collect("cuda_morph_quantization", plugin=row.name)
        if SERVER in f"{record.note} {record.source}".lower()
    ]
    return Note(
        backend=row.name,
        platform=platform,
        quantization=tuple(one.method for one in records if one.support.value != "unknown"),
        source=records[0].source if records else "",
    )


def _words(text: str) -> set[str]:
    return set(re.split(r"[^a-z0-9]+", text.lower()))


def _server(version: str | None) -> Finding:
    if version is None:
        fix = "Install it, or use the vendor's container image that has it."
        return Finding(id=SERVER, level=Level.FAIL, message="vLLM is not installed", fix=fix)
    own = ", ".join(own_platforms()) or "none found"
    text = f"vLLM {version}; its own platforms: {own}"
    return Finding(id=SERVER, level=Level.OK, message=text)


def _requirements(version: str | None, registered: Iterable[Registered]) -> Iterator[Finding]:
    """Compares what vLLM and its plugins ask for with what is installed."""
    plugins = {one.distribution for one in registered}
    for owner in ([SERVER] if version else []) + sorted(plugins - {SERVER}):
        yield from _asked_for(owner)


def _asked_for(owner: str) -> Iterator[Finding]:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        texts = metadata.requires(owner) or []
    except metadata.PackageNotFoundError:
        return
    for text in texts:
        try:
            wanted = Requirement(text)
            if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
                continue
        except InvalidRequirement:
            continue
        # Other requirements are for pip check; these decide whether the device is found at all.
        if not wanted.name.lower().replace("_", "-").startswith(("torch", SERVER)):
            continue
        installed = _version(wanted.name)
        if installed is not None and wanted.specifier.contains(installed, prereleases=True):
            continue
        what = f"{installed} is installed" if installed else "it is not installed"
        yield Finding(
            id=f"requires.{owner}.{wanted.name}",
            level=Level.FAIL,
            message=f"{owner} needs {wanted.name}{wanted.specifier}; {what}",
            fix="Install versions that belong together; the vendor publishes which.",
            source=f"metadata of {owner}",
        )


def _platforms(registered: Iterable[Registered]) -> Iterator[Finding]:
    platforms = [one for one in registered if one.group == PLATFORMS]
    left_out = [one.name for one in registered if not one.loaded]
    if left_out:
        text = f"{SELECTION}={os.environ.get(SELECTION)!r} leaves out {', '.join(left_out)}"
        yield Finding(
            id="selection", level=Level.WARN, message=text, fix=f"Unset {SELECTION} to load all."
        )
    active = [one for one in platforms if one.loaded]
    if len(active) > 1:
        names = ", ".join(f"{one.name} ({one.distribution})" for one in active)
        text = f"several platform plugins: {names}; vLLM refuses two that are active"
        yield Finding(
            id="platforms", level=Level.WARN, message=text, fix=f"Name one in {SELECTION}."
        )


def _served(note: Note) -> Finding:
    id_ = f"platform.{note.backend}"
    if note.platform:
        text = f"served by {note.platform}, judged by name"
        return Finding(id=id_, level=Level.OK, message=text)
    text = f"no platform plugin for {note.backend} is installed"
    fix = "Install the vendor's plugin for vLLM; cuda-morph does not stand in for it."
    return Finding(id=id_, level=Level.FAIL, message=text, fix=fix)


def _asked(outcome: contained.Outcome) -> Finding:
    if outcome.error:
        text = f"the platform plugin does not work: {outcome.error}"
        return Finding(id=outcome.id, level=Level.FAIL, message=text, fix="Repair or uninstall it.")
    active = (outcome.answer or {}).get("active")
    text = f"active: {active}" if active else "says that its device is not here"
    return Finding(id=outcome.id, level=Level.OK if active else Level.UNKNOWN, message=text)
