"""The whole examination of an installation, as ``cuda-morph doctor`` shows it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cuda_morph import environment, plugins
from cuda_morph.diagnosis import (
    accelerators,
    contained,
    entry_points,
    libraries,
    settings,
    startup,
)
from cuda_morph.diagnosis.finding import Finding, any_failed, count
from cuda_morph.diagnosis.surroundings import block
from cuda_morph.frozen_record import frozen_record
from cuda_morph.plugin_status import USABLE

if TYPE_CHECKING:
    from cuda_morph.plugin_status import PluginRow


@frozen_record
class Diagnosis:
    """Environment and findings."""

    surroundings: tuple[tuple[str, str], ...]
    findings: tuple[Finding, ...]

    @property
    def failed(self) -> bool:
        """Whether something does not work."""
        return any_failed(self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Returns the diagnosis as JSON-ready values."""
        return {
            "environment": dict(self.surroundings),
            "findings": [finding.as_dict() for finding in self.findings],
            "counts": count(self.findings),
        }


def examine(
    *, plugin: str | None = None, full: bool = False, seconds: float = contained.SECONDS
) -> Diagnosis:
    """Examines this installation. Foreign code runs in child processes only.

    Args:
        plugin: Accelerator that is meant to work: only its plugin is examined, and what it lacks
            is a failure.
        full: Loads what PyTorch loads at its import, and runs the health checks of plugins whose
            accelerator is not there.
        seconds: Time for each check of a plugin.

    Returns:
        What was found.

    Raises:
        UnknownBackendError: There is no such plugin.
    """
    rows = plugins.discover() if plugin is None else (plugins.get_plugin(plugin),)
    wanted = _wanted(plugin)
    detected = accelerators.detect(rows, seconds=seconds)
    looked_at = [
        row
        for row in rows
        if row.status in USABLE
        and (row.name in wanted or not accelerators.is_absent(detected.get(row.name)))
    ]
    checked = [row.name for row in rows if row.status in USABLE] if full else _names(looked_at)
    backends = [row.backend for row in looked_at if row.backend is not None]
    adapters = [
        row.backend.adapter_module for row in rows if row.backend and row.backend.adapter_module
    ]
    findings = [
        *libraries.look(),
        *settings.look(backends, plugins.plugin_names()),
        *startup.look_at_early_imports(adapters),
        *entry_points.look(),
        *startup.look_at_autoload(full=full, seconds=seconds),
        *accelerators.look_at_states(rows, detected, wanted),
        *accelerators.compare_versions(looked_at),
        *accelerators.run_checks(checked, strict=_names(looked_at), seconds=seconds),
    ]
    states = {name: _state(answer) for name, answer in detected.items()}
    return Diagnosis(surroundings=tuple(block(rows, states)), findings=tuple(findings))


def _wanted(plugin: str | None) -> set[str]:
    """A simulated accelerator needs nothing of its vendor, so the part before the colon counts."""
    named = os.environ.get(environment.BACKEND.name, "").strip().partition(":")[0]
    return {plugin} if plugin else {named} - {""}


def _names(rows: list[PluginRow]) -> list[str]:
    return [row.name for row in rows]


def _state(answer: dict[str, Any]) -> str:
    count_, reason = answer.get("device_count"), answer.get("reason", "")
    if answer["status"] == "ready":
        return f"ready, {count_} device(s){', simulated' if answer.get('simulated') else ''}"
    return f"{answer['status']}: {reason}"
