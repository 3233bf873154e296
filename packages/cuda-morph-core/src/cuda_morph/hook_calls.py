"""Calling one hook of one plugin, and judging what comes back.

pluggy's own call runs all plugins together, and one that raises takes the others with it. Here an
implementation is called alone and every failure becomes a `PluginError` that names the plugin and
the hook.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import cache
from itertools import islice
from typing import Any

from cuda_morph import records
from cuda_morph.errors import PluginError
from cuda_morph.frozen_record import frozen_record
from cuda_morph.hook_table import HOOKS, HookInfo

MAX_RECORDS = 100_000
"""More than any table of a vendor; an endless generator stops here."""

PASS_THROUGH = (KeyboardInterrupt, SystemExit)
"""What a plugin may raise without being contained: the user's wish to stop."""


@frozen_record
class HookImpl:
    """A plugin's implementation of one hook."""

    function: Callable[..., Any]
    argnames: tuple[str, ...]
    """The arguments of the hook that it takes."""


def call_hook(
    plugin: str, hook: str, impl: HookImpl, arguments: Mapping[str, object]
) -> tuple[Any, ...]:
    """Calls one implementation.

    Args:
        plugin: Name of the plugin, for messages.
        hook: Name of the hook.
        impl: The implementation.
        arguments: All arguments of the hook; the implementation may take fewer.

    Returns:
        The records, none when an optional hook has nothing to say.

    Raises:
        PluginError: The implementation raised, or returned something else than its records.
    """
    info = HOOKS[hook]
    try:
        answer = impl.function(*(arguments[name] for name in impl.argnames))
        found = _as_records(answer, info)
    except PASS_THROUGH:
        raise
    except _WrongAnswerError as wrong:
        raise PluginError(
            f"Plugin {plugin!r}: hook {hook} {wrong}.",
            hint="Report this to the plugin's authors; the plugin is not used.",
        ) from None
    except BaseException as error:
        raise PluginError(
            f"Plugin {plugin!r}: hook {hook} raised {describe(error)}.",
            hint="Report this to the plugin's authors; the plugin is not used.",
        ) from error
    return found


def describe(error: BaseException) -> str:
    """Returns type and text of an error, whatever its ``__str__`` does."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a foreign class
        text = "(its text cannot be read)"
    name = type(error).__name__
    return f"{name}: {text.rstrip('.')}" if text else name


class _WrongAnswerError(Exception):
    """The answer of a hook is not what the specification says."""


def _as_records(answer: object, info: HookInfo) -> tuple[object, ...]:
    wanted = " or ".join(record.__name__ for record in info.records)
    if not info.many:
        if answer is None and not info.required:
            return ()
        _check(answer, info, "returned", wanted)
        return (answer,)
    if not isinstance(answer, Iterable) or isinstance(answer, (str, bytes)):
        raise _WrongAnswerError(f"must return an iterable of {wanted}, got {_got(answer)}")
    found = tuple(islice(answer, MAX_RECORDS + 1))
    if len(found) > MAX_RECORDS:
        raise _WrongAnswerError(f"returned more than {MAX_RECORDS} records")
    for index, record in enumerate(found):
        _check(record, info, f"returned at position {index}", wanted)
    return found


def _check(record: object, info: HookInfo, where: str, wanted: str) -> None:
    if not isinstance(record, info.records):
        raise _WrongAnswerError(f"must return {wanted}, but {where} {_got(record)}")
    problem = field_problem(record)
    if problem:
        raise _WrongAnswerError(f"{where} a {type(record).__name__} whose {problem}")


def _got(value: object) -> str:
    return "None" if value is None else type(value).__name__


def field_problem(record: object) -> str | None:
    """Looks for a field whose value has another type than the record declares.

    Args:
        record: An instance of a class of :mod:`cuda_morph.records`.

    Returns:
        The first problem in words, ``None`` when there is none.
    """
    # A plugin's subclass is judged by the record it derives from.
    known = next(base for base in type(record).__mro__ if base.__module__ == records.__name__)
    for name, hint, declared in _field_types(known):
        value = getattr(record, name)
        if not _matches(value, hint):
            return f"field {name!r} must be {declared}, got {type(value).__name__} {value!r:.60}"
    return None


@cache
def _field_types(record_type: type) -> tuple[tuple[str, Any, str], ...]:
    return tuple((item.name, _hint(str(item.type)), str(item.type)) for item in fields(record_type))


@cache
def _hint(annotation: str) -> Any:
    """Returns the type that an annotation of the records means; most fields share a few."""
    # The device protocol belongs to activation, which the records know by name only.
    return eval(annotation, {**vars(records), "DeviceRuntime": object})  # noqa: S307 - our own text


def _matches(value: object, hint: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in {typing.Union, types.UnionType}:
        return any(_matches(value, choice) for choice in arguments)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if arguments[-1] is Ellipsis:
            return all(_matches(item, arguments[0]) for item in value)
        return len(value) == len(arguments) and all(map(_matches, value, arguments))
    if origin is Mapping:
        key, item = arguments
        return isinstance(value, Mapping) and all(
            _matches(name, key) and _matches(content, item) for name, content in value.items()
        )
    if origin is Callable:
        return callable(value)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)
