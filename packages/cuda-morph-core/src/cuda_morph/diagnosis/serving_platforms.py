"""Findings on platforms of vLLM: which one serves a backend, and what keeps it from doing so."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from cuda_morph.diagnosis.finding import Finding, Level
from cuda_morph.diagnosis.serving_metadata import (
    PLATFORMS,
    SELECTION,
    SERVER,
    built_for,
    own_platforms,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cuda_morph.diagnosis.contained import Outcome
    from cuda_morph.diagnosis.serving_metadata import Registered
    from cuda_morph.plugin_status import PluginRow

TARGET = "VLLM_TARGET_DEVICE"
_CPU = "cpu"


def server(version: str | None) -> Finding:
    """Looks at vLLM itself.

    Args:
        version: Of vLLM; ``None`` where it is not installed.

    Returns:
        A failure without it.
    """
    if version is None:
        fix = "Install it, or use the vendor's container image that has it."
        return Finding(id=SERVER, level=Level.FAIL, message="vLLM is not installed", fix=fix)
    own = ", ".join(own_platforms()) or "none found"
    text = f"vLLM {version}; its own platforms: {own}"
    return Finding(id=SERVER, level=Level.OK, message=text)


def plugin_for(row: PluginRow, registered: Iterable[Registered]) -> Registered | None:
    """Finds the platform plugin for a backend, by its name; one that is loaded comes first.

    Args:
        row: The backend.
        registered: Entry points for vLLM.

    Returns:
        The entry point, ``None`` without one.
    """
    names = _names(row)
    fitting = [
        one
        for one in registered
        if one.group == PLATFORMS and names & _words(f"{one.name} {one.distribution}")
    ]
    return next(iter(sorted(fitting, key=lambda one: not one.loaded)), None)


def own_platform_for(row: PluginRow) -> str:
    """Names the platform for a backend that vLLM brings along itself, if there is one."""
    return min(_names(row) & set(own_platforms()), default="")


def _names(row: PluginRow) -> set[str]:
    device = row.backend.device_type if row.backend else row.name
    # A vendor whose PyTorch answers to CUDA's name is not served by vLLM's platform for CUDA.
    return {row.name} if device == "cuda" else {row.name, device}


def _words(text: str) -> set[str]:
    return set(re.split(r"[^a-z0-9]+", text.lower()))


def look(registered: Iterable[Registered]) -> Iterator[Finding]:
    """Looks at what is loaded and what is left out.

    Args:
        registered: Entry points for vLLM.

    Yields:
        What is worth knowing.
    """
    registered = tuple(registered)
    left_out = [one.name for one in registered if not one.loaded]
    if left_out:
        text = f"{SELECTION}={os.environ.get(SELECTION)!r} leaves out {', '.join(left_out)}"
        fix = f"Unset {SELECTION} to load all; plugins of one distribution belong together."
        yield Finding(id="selection", level=Level.WARN, message=text, fix=fix)
    active = [one for one in registered if one.group == PLATFORMS and one.loaded]
    if len(active) > 1:
        names = ", ".join(f"{one.name} ({one.distribution})" for one in active)
        text = f"several platform plugins: {names}; vLLM refuses two that are active"
        one = active[0].distribution
        words = ",".join(entry.name for entry in registered if entry.distribution == one)
        fix = f"Uninstall those of other devices, or choose: for {one}, {SELECTION}={words}"
        yield Finding(id="platforms", level=Level.WARN, message=text, fix=fix)


def served(row: PluginRow, registered: Iterable[Registered], version: str) -> Finding:
    """Judges which platform serves a backend.

    Args:
        row: The backend.
        registered: Entry points for vLLM.
        version: Of vLLM.

    Returns:
        A failure where nothing does.
    """
    id_, own = f"platform.{row.name}", own_platform_for(row)
    if own != _CPU and os.environ.get(TARGET, "").lower() == _CPU:
        text = f"{TARGET}=cpu: vLLM takes the CPU, and asks no platform plugin"
        return Finding(id=id_, level=Level.FAIL, message=text, fix=f"Unset {TARGET}.")
    plugin = plugin_for(row, registered)
    if plugin is not None and not plugin.loaded:
        text = f"{SELECTION} leaves out {plugin.name}, the platform plugin for {row.name}"
        fix = f"Unset {SELECTION}, or add {plugin.name}."
        return Finding(id=id_, level=Level.FAIL, message=text, fix=fix)
    if plugin is not None:
        text = f"served by {plugin.name} of {plugin.distribution}, judged by name"
        return Finding(id=id_, level=Level.OK, message=text)
    if own:
        return _own(id_, own, version)
    text = f"no platform plugin for {row.name} is installed"
    fix = "Install the vendor's plugin for vLLM; cuda-morph does not stand in for it."
    return Finding(id=id_, level=Level.FAIL, message=text, fix=fix)


def _own(id_: str, own: str, version: str) -> Finding:
    if own in built_for(version) or (own == _CPU == os.environ.get(TARGET, "").lower()):
        text = f"served by {own} of vLLM itself"
        return Finding(id=id_, level=Level.OK, message=text)
    text = f"every vLLM has a platform {own}; version {version} does not say it was built for it"
    fix = f"Install a build of vLLM for {own}: its version ends in +{own}, or so."
    return Finding(id=id_, level=Level.WARN, message=text, fix=fix)


def asked(outcome: Outcome) -> Finding:
    """Judges what a platform plugin answered when it was asked for its device.

    Args:
        outcome: Of the child process.

    Returns:
        A failure when it does not work.
    """
    if outcome.error:
        text = f"the platform plugin does not work: {outcome.error}"
        return Finding(id=outcome.id, level=Level.FAIL, message=text, fix="Repair or uninstall it.")
    active = (outcome.answer or {}).get("active")
    text = f"active: {active}" if active else "says that its device is not here"
    return Finding(id=outcome.id, level=Level.OK if active else Level.UNKNOWN, message=text)
