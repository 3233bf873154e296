"""Discovery of plugins, and the one way to ask them something.

Plugins are listed by reading entry points, loaded when first needed, and called one by one. A
plugin that breaks the contract keeps a status row that says how, is not asked again, and never
affects another one. Nothing here imports torch.
"""

from __future__ import annotations

import difflib
import time
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from cuda_morph import environment
from cuda_morph.errors import PluginError, SettingError, UnknownBackendError
from cuda_morph.frozen_record import frozen_record
from cuda_morph.hook_calls import call_hook
from cuda_morph.hook_table import HOOKS
from cuda_morph.plugin_listing import RESERVED_NAMES, Candidate, list_candidates, normalised
from cuda_morph.plugin_loading import LoadedPlugin, load_candidate, load_plugin
from cuda_morph.plugin_status import FAULTY, USABLE, PluginRow, PluginStatus
from cuda_morph.records import DeviceMapping

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cuda_morph.records import Detection

__all__ = [
    "PluginRow",
    "PluginStatus",
    "collect",
    "device_mapping",
    "discover",
    "examine",
    "get_plugin",
    "plugin_names",
    "unmatched_names",
]


@frozen_record
class _Listing:
    """What was found, for one setting of the lists; plugins are added as they are loaded."""

    allow: tuple[str, ...]
    block: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    loaded: dict[tuple[str, str, str], LoadedPlugin] = field(default_factory=dict)


DETECT = "cuda_morph_detect"

_listing: _Listing | None = None
# There is no lock. A plugin is imported under Python's import locks, so a lock of ours could be
# taken in the opposite order by a thread whose `import torch` activates. Two threads that load a
# plugin at once do the same work twice, and one result is kept.


def plugin_names() -> tuple[str, ...]:
    """Lists the names of all installed plugins and imports none.

    Returns:
        The names, sorted, each once.
    """
    return tuple(sorted({candidate.name for candidate in _current().candidates}))


def discover(*, refresh: bool = False, detect: bool = False) -> tuple[PluginRow, ...]:
    """Loads every plugin that is not blocked.

    Args:
        refresh: Forgets earlier results and reads the entry points anew.
        detect: Also asks each plugin whether its accelerator is there, which may import torch and
            vendor libraries.

    Returns:
        One row for each plugin, sorted by name.

    Raises:
        PluginError: In strict mode, a plugin is broken, incompatible or in conflict.
    """
    listing = _current(refresh=refresh)
    rows = [_load(listing, candidate).row for candidate in listing.candidates]
    if detect:
        rows = [_detect(listing, candidate) for candidate in listing.candidates]
    _enforce(rows)
    return tuple(rows)


def get_plugin(name: str, *, detect: bool = False) -> PluginRow:
    """Loads one plugin and no other.

    Args:
        name: The plugin's name.
        detect: Also asks whether its accelerator is there.

    Returns:
        Its row, whatever the status.

    Raises:
        UnknownBackendError: No plugin of that name is installed.
        PluginError: In strict mode, it is broken, incompatible or in conflict.
    """
    listing = _current()
    candidate = _find(listing, name)
    row = _detect(listing, candidate) if detect else _load(listing, candidate).row
    _enforce([row])
    return row


def collect(hook_name: str, plugin: str | None = None, **arguments: Any) -> list[tuple[str, Any]]:
    """Calls one hook of every usable plugin, or of one.

    Args:
        hook_name: A key of `cuda_morph.hook_table.HOOKS`.
        plugin: Asks this plugin only. Its failure is then the caller's answer.
        **arguments: All arguments of the hook.

    Returns:
        Pairs of plugin name and record, sorted by plugin name, in the plugin's own order.

    Raises:
        SettingError: There is no such hook, or its arguments are others.
        UnknownBackendError: The named plugin is not installed.
        PluginError: The named plugin cannot be used or broke the contract; or any did, in strict
            mode.
    """
    _check_arguments(hook_name, arguments)
    listing = _current()
    candidates = listing.candidates if plugin is None else (_find(listing, plugin),)
    found: list[tuple[str, Any]] = []
    for candidate in candidates:
        records = _call(listing, candidate, hook_name, arguments)
        row = _load(listing, candidate).row
        if plugin is not None and row.status not in USABLE:
            raise _error(row)
        _enforce([row])
        found += [(candidate.name, record) for record in records]
    return found


def device_mapping(plugin: str) -> DeviceMapping:
    """Asks a plugin how its device stands for CUDA. May import torch and the vendor's library.

    Args:
        plugin: The plugin's name.

    Returns:
        Its own mapping, or the plain one onto its device type when it has no such hook.

    Raises:
        UnknownBackendError: The plugin is not installed.
        PluginError: The plugin cannot be used or broke the contract.
    """
    found = collect("cuda_morph_device_mapping", plugin=plugin)
    if found:
        mapping: DeviceMapping = found[0][1]
        return mapping
    backend = get_plugin(plugin).backend
    if backend is None:
        raise _error(get_plugin(plugin))
    return DeviceMapping(target=backend.device_type)


def examine(plugin: object, *, name: str, torch_version: str | None = None) -> PluginRow:
    """Judges a plugin that is not installed: for the tests of a plugin's authors.

    Every hook is called once and its answer checked, as core would.

    Args:
        plugin: The module or object that implements the hooks.
        name: The name its entry point will have.
        torch_version: Passed to the hooks that ask for it.

    Returns:
        The row the plugin would have, with its detection.
    """
    start = PluginRow(name=name, status=PluginStatus.READY, dist="(not installed)")
    loaded = load_plugin(start, lambda: plugin)
    for hook in tuple(loaded.hooks):
        loaded, _ = _ask(loaded, hook, dict.fromkeys(HOOKS[hook].arguments, torch_version))
    return loaded.row


def unmatched_names() -> tuple[str, ...]:
    """Lists entries of the allow and block lists that name no installed plugin.

    Returns:
        One sentence for each, for a warning.
    """
    listing = _current()
    if not listing.allow and not listing.block:
        return ()
    known = {normalised(text) for item in listing.candidates for text in (item.name, item.dist)}
    lists = ((environment.PLUGINS, listing.allow), (environment.BLOCK, listing.block))
    return tuple(
        f"{variable.name} names {name!r}, which is not installed."
        for variable, names in lists
        for name in names
        if normalised(name) not in known
    )


def _current(*, refresh: bool = False) -> _Listing:
    global _listing
    allow = environment.read_list(environment.PLUGINS)
    block = environment.read_list(environment.BLOCK)
    listing = _listing
    if refresh or listing is None or (listing.allow, listing.block) != (allow, block):
        candidates = list_candidates(allow, block)
        listing = _listing = _Listing(allow=allow, block=block, candidates=candidates)
    return listing


def _find(listing: _Listing, name: str) -> Candidate:
    named = [candidate for candidate in listing.candidates if candidate.name == name]
    if named:
        # Of several claims to a name, core's own holds and one that was not blocked says most.
        return min(named, key=lambda item: (not item.builtin, bool(item.block)))
    names = sorted({*plugin_names(), *RESERVED_NAMES})
    close = difflib.get_close_matches(name.lower(), names, n=1)
    guess = f"Did you mean {close[0]!r}? " if close else ""
    raise UnknownBackendError(
        f"There is no backend {name!r}.", hint=f"{guess}Installed: {', '.join(names)}."
    )


def _load(listing: _Listing, candidate: Candidate) -> LoadedPlugin:
    loaded = listing.loaded.get(candidate.key)
    if loaded is None:
        loaded = listing.loaded[candidate.key] = load_candidate(candidate)
    return loaded


def _call(
    listing: _Listing, candidate: Candidate, hook: str, arguments: dict[str, Any]
) -> tuple[Any, ...]:
    loaded, records = _ask(_load(listing, candidate), hook, arguments)
    listing.loaded[candidate.key] = loaded
    return records


def _detect(listing: _Listing, candidate: Candidate) -> PluginRow:
    _call(listing, candidate, DETECT, {})
    return _load(listing, candidate).row


def _ask(
    loaded: LoadedPlugin, hook: str, arguments: dict[str, Any]
) -> tuple[LoadedPlugin, tuple[Any, ...]]:
    """Calls one hook; a plugin that fails is broken from then on."""
    if loaded.row.status not in USABLE or hook not in loaded.hooks:
        return loaded, ()
    started = time.perf_counter()
    try:
        records = call_hook(loaded.row.name, hook, loaded.hooks[hook], arguments)
    except PluginError as error:
        row = replace(
            loaded.row,
            status=PluginStatus.BROKEN,
            reason=error.message.rstrip("."),
            error=error.__cause__ or error,
        )
        return LoadedPlugin(row=row), ()
    if hook == DETECT:
        seconds = time.perf_counter() - started
        return replace(loaded, row=_with_detection(loaded.row, records[0], seconds)), records
    return loaded, records


def _with_detection(row: PluginRow, detection: Detection, seconds: float) -> PluginRow:
    available = detection.available
    return replace(
        row,
        status=PluginStatus.READY if available else PluginStatus.UNAVAILABLE,
        detection=detection,
        detect_seconds=seconds,
        reason="" if available else detection.reason or "the plugin gives no reason",
    )


def _check_arguments(hook_name: str, arguments: dict[str, Any]) -> None:
    info = HOOKS.get(hook_name)
    if info is None:
        close = difflib.get_close_matches(hook_name, HOOKS, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else f"Hooks: {', '.join(HOOKS)}."
        raise SettingError(f"There is no hook {hook_name!r}.", hint=hint)
    if set(arguments) != set(info.arguments):
        raise SettingError(
            f"Hook {hook_name} takes the arguments ({', '.join(info.arguments)}), "
            f"got ({', '.join(sorted(arguments))})."
        )


def _enforce(rows: Iterable[PluginRow]) -> None:
    faulty = [row for row in rows if row.status in FAULTY]
    if faulty and environment.read_flag(environment.STRICT):
        raise _error(*faulty)


def _error(*rows: PluginRow) -> PluginError:
    """The error that stands for rows which cannot be used."""
    texts = [f"{row.name} ({row.dist}) is {row.status.value}: {row.reason}" for row in rows]
    error = PluginError(
        "; ".join(texts), hint="cuda-morph plugins shows the state of every plugin."
    )
    error.__cause__ = rows[0].error
    return error
