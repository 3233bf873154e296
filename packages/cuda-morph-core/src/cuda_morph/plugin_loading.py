"""Loading one plugin: import, registration, the required hooks, and the version it speaks.

Whatever goes wrong ends in the plugin's status row and nowhere else.
"""

from __future__ import annotations

import inspect
import re
import time
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cuda_morph import hook_table, hookspecs, records
from cuda_morph.errors import PluginError
from cuda_morph.frozen_record import frozen_record
from cuda_morph.hook_calls import PASS_THROUGH, HookImpl, call_hook, describe
from cuda_morph.plugin_status import PluginRow, PluginStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cuda_morph.plugin_listing import Candidate

SLOW_SECONDS = 1.0
"""A plugin that takes longer to load gets a note in its row."""

_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_SPEC = re.compile(r"(\d+)\.(\d+)")


@frozen_record
class LoadedPlugin:
    """A plugin's row and its hook implementations."""

    row: PluginRow
    hooks: Mapping[str, HookImpl] = field(default_factory=dict)


def load_candidate(candidate: Candidate) -> LoadedPlugin:
    """Loads what an entry point names, unless it is blocked or in conflict.

    Args:
        candidate: The plugin as listed.

    Returns:
        The plugin with its row; without hooks when it cannot be used.
    """
    row = PluginRow(
        name=candidate.name,
        status=PluginStatus.READY,
        dist=candidate.dist,
        version=candidate.version,
        entry_point=candidate.entry_point.value,
        builtin=candidate.builtin,
    )
    if candidate.block:
        return LoadedPlugin(row=replace(row, status=PluginStatus.BLOCKED, reason=candidate.block))
    if candidate.rivals:
        claims = (f"{candidate.dist} {candidate.version or ''}".strip(), *candidate.rivals)
        reason = (
            f"the name {candidate.name!r} is claimed by {' and by '.join(claims)}; "
            "uninstall or block all but one of them"
        )
        return LoadedPlugin(row=replace(row, status=PluginStatus.CONFLICT, reason=reason))
    return load_plugin(row, candidate.load)


def load_plugin(row: PluginRow, fetch: Callable[[], object]) -> LoadedPlugin:
    """Loads a plugin and asks it the one question that identifies it.

    Args:
        row: What is known of it before.
        fetch: Imports the module or object that implements the hooks.

    Returns:
        The plugin with its row; without hooks when it cannot be used.
    """
    started = time.perf_counter()
    try:
        plugin = fetch()
    except PASS_THROUGH:
        raise
    except BaseException as error:  # noqa: BLE001 - a vendor's import may raise anything
        reason = f"cannot be imported: {describe(error)}"
        loaded = LoadedPlugin(row=_broken(row, reason, error))
    else:
        loaded = _register(row, plugin)
    seconds = time.perf_counter() - started
    notes = loaded.row.notes
    if seconds > SLOW_SECONDS:
        notes = (*notes, f"took {seconds:.1f} s to load; import heavy modules inside the hooks")
    return replace(loaded, row=replace(loaded.row, load_seconds=seconds, notes=notes))


def _register(row: PluginRow, plugin: object) -> LoadedPlugin:
    try:
        hooks, notes = _find_hooks(row.name, plugin)
        row = replace(row, hooks=tuple(sorted(hooks)), notes=notes)
        (backend,) = call_hook(
            row.name, "cuda_morph_backend", hooks["cuda_morph_backend"], MappingProxyType({})
        )
    except PASS_THROUGH:
        raise
    except PluginError as error:
        return LoadedPlugin(row=_broken(row, _with_spec_hint(error), error.__cause__ or error))
    except BaseException as error:  # noqa: BLE001 - e.g. a module's own __getattr__
        return LoadedPlugin(row=_broken(row, f"cannot be registered: {describe(error)}", error))
    row = _judge(replace(row, backend=backend, spec=backend.spec))
    usable = row.status is PluginStatus.READY
    return LoadedPlugin(row=row, hooks=MappingProxyType(hooks if usable else {}))


def _find_hooks(name: str, plugin: object) -> tuple[dict[str, HookImpl], tuple[str, ...]]:
    if isinstance(plugin, type):
        raise PluginError(f"The entry point of plugin {name!r} names a class, not an instance.")
    hooks: dict[str, HookImpl] = {}
    notes: list[str] = []
    for hook, function, options in _marked(plugin):
        info = hook_table.HOOKS.get(hook)
        if info is None:
            notes.append(f"hook {hook} is not known to this core and is not called")
            continue
        if hook in hooks or options.get("wrapper") or options.get("hookwrapper"):
            raise PluginError(f"Plugin {name!r} must implement hook {hook} once, unwrapped.")
        argnames = _required_arguments(function)
        unknown = ", ".join(sorted(set(argnames) - set(info.arguments)))
        if unknown:
            raise PluginError(
                f"Plugin {name!r} does not fit the specification: hook {hook} asks for {unknown}, "
                f"and is given ({', '.join(info.arguments)})."
            )
        hooks[hook] = HookImpl(function=function, argnames=argnames)
    for info in hook_table.HOOKS.values():
        if info.required and info.name not in hooks:
            unmarked = callable(getattr(plugin, info.name, None))
            cause = "is not marked with @hookimpl" if unmarked else "is missing"
            raise PluginError(f"Plugin {name!r}: the required hook {info.name} {cause}.")
    return hooks, tuple(sorted(notes))


def _marked(plugin: object) -> Iterator[tuple[str, Callable[..., Any], Mapping[str, object]]]:
    """Yields the marked functions of a plugin: name of the hook, function, options of the mark."""
    for attribute in dir(plugin):
        function = getattr(plugin, attribute, None)
        if not inspect.isroutine(function):
            continue
        options = getattr(function, hookspecs.IMPL_MARK, None)
        if isinstance(options, dict):
            yield str(options.get("specname") or attribute), function, options


def _required_arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    """Returns the names of the positional parameters that have no default."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind in kinds and parameter.default is inspect.Parameter.empty
    )


def _broken(row: PluginRow, reason: str, error: BaseException) -> PluginRow:
    return replace(row, status=PluginStatus.BROKEN, reason=reason, error=error)


def _with_spec_hint(error: PluginError) -> str:
    cause = error.__cause__
    if isinstance(cause, TypeError) and "unexpected keyword argument" in str(cause):
        return (
            f"{error.message} The plugin may be written for a newer core than one of "
            f"specification {records.SPEC}"
        )
    return error.message.rstrip(".")


def _judge(row: PluginRow) -> PluginRow:
    backend = row.backend
    if backend is None:
        return row
    if not _NAME.fullmatch(backend.name):
        problem = "must be lower-case letters, digits, - and _"
        return _fault(row, PluginStatus.BROKEN, f"the backend's name {backend.name!r} {problem}")
    if backend.name != row.name:
        reason = (
            f"the entry point is named {row.name!r} but its backend calls itself {backend.name!r}; "
            "both must be the same"
        )
        return _fault(row, PluginStatus.BROKEN, reason)
    return _negotiate(row, backend.spec)


def _negotiate(row: PluginRow, spec: str) -> PluginRow:
    match = _SPEC.fullmatch(spec)
    if match is None:
        reason = f"the backend's spec {spec!r} is not of the form major.minor"
        return _fault(row, PluginStatus.BROKEN, reason)
    theirs = (int(match[1]), int(match[2]))
    major, minor = records.SPEC.split(".")
    ours = (int(major), int(minor))
    if theirs[0] != ours[0]:
        newer = theirs[0] > ours[0]
        step = "upgrade cuda-morph-core" if newer else f"upgrade {row.dist}"
        reason = f"written for specification {spec}, this core speaks {records.SPEC}; {step}"
        return _fault(row, PluginStatus.INCOMPATIBLE, reason)
    if theirs > ours:
        note = f"written for specification {spec}, newer than this core's {records.SPEC}"
        return replace(row, notes=(*row.notes, note))
    return row


def _fault(row: PluginRow, status: PluginStatus, reason: str) -> PluginRow:
    return replace(row, status=status, reason=reason, error=PluginError(f"{row.name}: {reason}"))
