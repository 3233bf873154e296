"""Whether vLLM can run here: what is installed, registered, and asked for by whom."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cuda_morph.diagnosis import contained, serving_platforms, serving_versions
from cuda_morph.diagnosis.finding import Finding, any_failed
from cuda_morph.diagnosis.serving_metadata import (
    PLATFORMS,
    SERVER,
    Registered,
    registered,
    version_of,
)
from cuda_morph.frozen_record import frozen_record
from cuda_morph.plugin_status import USABLE
from cuda_morph.plugins import collect, discover, get_plugin

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cuda_morph.plugin_status import PluginRow


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
        return not any_failed(self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Returns the answer as JSON-ready values."""
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
    version, entries = version_of(SERVER), tuple(registered())
    findings = [
        serving_platforms.server(version),
        *serving_versions.look(version, entries),
        *serving_platforms.look(entries),
    ]
    if backend is not None and version is not None:
        findings.append(serving_platforms.served(rows[0], entries, version))
    if full:
        loaded = (one.name for one in entries if one.group == PLATFORMS and one.loaded)
        names = dict.fromkeys(loaded)
        answers = contained.run("platform", names, seconds=seconds)
        findings += [serving_platforms.asked(outcome) for outcome in answers]
    notes = tuple(_note(row, entries) for row in rows)
    return Readiness(version=version, registered=entries, notes=notes, findings=tuple(findings))


def _note(row: PluginRow, entries: Iterable[Registered]) -> Note:
    plugin, own = (
        serving_platforms.plugin_for(row, entries),
        serving_platforms.own_platform_for(row),
    )
    platform = f"{own} of vLLM itself" if own else ""
    if plugin is not None:
        platform = f"{plugin.name} of {plugin.distribution} {plugin.version}"
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
