"""Findings on plugins: their state, their health checks and their published version matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda_morph.adapter_detection import ABSENT, PROBLEM, distribution_version, version_fits
from cuda_morph.diagnosis import contained
from cuda_morph.diagnosis.finding import Finding, Level
from cuda_morph.errors import PluginError
from cuda_morph.plugin_status import FAULTY, USABLE
from cuda_morph.plugins import collect, unmatched_names
from cuda_morph.torch_build import torch_build
from cuda_morph.torch_facts import torch_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cuda_morph.plugin_status import PluginRow
    from cuda_morph.records import VersionRow

_LEVELS = {True: Level.OK, False: Level.FAIL, None: Level.UNKNOWN}


def detect(rows: Iterable[PluginRow], *, seconds: float) -> dict[str, dict[str, Any]]:
    """Asks every usable plugin for its devices, in a child process.

    Args:
        rows: The plugins.
        seconds: Time for each.

    Returns:
        By plugin, its row as `PluginRow.as_dict` gives it; with ``reason`` and ``error`` only for
        one that took its process along.
    """
    names = [row.name for row in rows if row.status in USABLE]
    found: dict[str, dict[str, Any]] = {}
    for outcome in contained.run("detect", names, seconds=seconds):
        row = (outcome.answer or {}).get("row")
        found[outcome.subject] = row or {"status": "broken", "reason": outcome.error, "died": True}
    return found


def is_absent(detected: Mapping[str, Any] | None) -> bool:
    """Tells whether a machine has nothing of a plugin's vendor.

    Args:
        detected: The plugin's entry of `detect`.

    Returns:
        True when the adapter, or the vendor's build of PyTorch, is not installed.
    """
    return bool(detected) and (detected or {}).get("details", {}).get(PROBLEM) in ABSENT


def look_at_states(
    rows: Iterable[PluginRow], detected: Mapping[str, Mapping[str, Any]], wanted: Iterable[str]
) -> Iterator[Finding]:
    """Judges the state of each plugin.

    Args:
        rows: The plugins.
        detected: From `detect`.
        wanted: Plugins that the user means to use.

    Yields:
        One finding for each plugin.
    """
    wanted = set(wanted)
    for row in rows:
        answer = detected.get(row.name, {})
        yield _judge(row, answer, is_wanted=row.name in wanted)
    for text in unmatched_names():
        yield Finding(id="plugin.names", level=Level.WARN, message=text, fix="Correct the name.")


def _judge(row: PluginRow, answer: Mapping[str, Any], *, is_wanted: bool) -> Finding:
    status = answer.get("status", row.status.value)
    reason = answer.get("reason") or row.reason
    level, message, fix = Level.OK, f"{status}: {reason}", ""
    if row.status in FAULTY or status == "broken":
        level = Level.FAIL
        fix = f"Upgrade {row.dist}, or set CUDA_MORPH_BLOCK={row.name}."
    elif status == "ready":
        message = f"ready, {answer.get('device_count')} device(s)"
        message += ", simulated: no hardware is used" if answer.get("simulated") else ""
    elif status == "blocked":
        level = Level.WARN if is_wanted else Level.OK
    else:
        level = Level.UNKNOWN if is_absent(answer) else Level.WARN
        level = Level.FAIL if is_wanted else level
        message, fix = reason, answer.get("details", {}).get("advice", "")
    return Finding(id=f"plugin.{row.name}", level=level, message=message, fix=fix)


def run_checks(names: Iterable[str], *, strict: Iterable[str], seconds: float) -> Iterator[Finding]:
    """Runs the health checks of plugins, in a child process.

    Args:
        names: The plugins.
        strict: Those whose failed checks are failures; for others they are warnings.
        seconds: Time for each check.

    Yields:
        One finding for each check.
    """
    strict = set(strict)
    for outcome in contained.run("checks", names, seconds=seconds):
        answer = outcome.answer or {}
        if "listed" in answer:
            continue
        if outcome.error:
            text = f"{outcome.summary}: the check did not work: {outcome.error}"
            fix = "Report this to the plugin's authors."
            yield Finding(id=outcome.id, level=Level.UNKNOWN, message=text, fix=fix)
            continue
        level = _LEVELS[answer["ok"]]
        if level is Level.FAIL and outcome.subject not in strict:
            level = Level.WARN
        fix = "" if level is Level.OK else outcome.fix
        yield Finding(id=outcome.id, level=level, message=answer["message"], fix=fix)


def compare_versions(rows: Iterable[PluginRow]) -> Iterator[Finding]:
    """Compares what is installed with the version matrix of each plugin.

    Args:
        rows: The plugins whose accelerator is there or asked for.

    Yields:
        One finding for each plugin that publishes a matrix and whose adapter is installed.
    """
    for row in rows:
        if row.status not in USABLE or row.backend is None:
            continue
        try:
            matrix = [record for _, record in collect("cuda_morph_version_matrix", row.name)]
        except PluginError as error:
            text, fix = error.message, error.hint or ""
            yield Finding(id=f"versions.{row.name}", level=Level.FAIL, message=text, fix=fix)
            continue
        adapter = row.backend.adapter_module
        build = torch_build()
        own = distribution_version(adapter) if adapter else build.version if build else None
        if matrix and own:
            yield _compare(f"versions.{row.name}", adapter or "torch", own, matrix)


def _compare(id_: str, adapter: str, own: str, matrix: list[VersionRow]) -> Finding:
    torch = torch_version() or "none"
    listed = [row for row in matrix if own in (row.adapter, f"{row.adapter}+cpu")]
    pair = f"{adapter} {own} with PyTorch {torch}"
    if not listed:
        text = f"{pair} is in no published row known to the plugin"
        return Finding(id=id_, level=Level.UNKNOWN, message=text, source=matrix[0].source)
    for row in listed:
        if version_fits(row.torch, torch):
            needs = (("SDK", row.sdk), ("driver", row.driver), ("Python", row.python))
            more = ", ".join(f"{name} {text}" for name, text in needs if text)
            text = f"{pair} is published" + (f"; it needs {more}" if more else "")
            return Finding(id=id_, level=Level.OK, message=text, source=row.source)
    choices = " or ".join(sorted({row.torch for row in listed}))
    return Finding(
        id=id_,
        level=Level.FAIL,
        message=f"{pair}: it is made for PyTorch {choices}",
        fix=f"Install PyTorch {choices}, or the {adapter} that is made for {torch}.",
        source=listed[0].source,
    )
