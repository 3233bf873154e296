"""The marks of hooks and their implementations, in pluggy's form but without importing pluggy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable

PROJECT = "cuda_morph"
"""pluggy's project name; the marks below carry it."""

ENTRY_POINT_GROUP = "cuda_morph.plugins"
"""Entry-point group of plugins: the entry's name is the plugin's name."""

IMPL_MARK = f"{PROJECT}_impl"
"""Attribute of a marked implementation, as ``pluggy.HookimplMarker`` writes it."""

_IMPL_OPTIONS: dict[str, Any] = {
    "wrapper": False,
    "hookwrapper": False,
    "optionalhook": False,
    "tryfirst": False,
    "trylast": False,
    "specname": None,
}

_Function = TypeVar("_Function", bound="Callable[..., Any]")


@overload
def hookimpl(function: _Function) -> _Function: ...


@overload
def hookimpl(**options: Any) -> Callable[[_Function], _Function]: ...


def hookimpl(function: Any = None, **options: Any) -> Any:
    """Marks a plugin's implementation of a hook.

    ``pluggy.HookimplMarker("cuda_morph")`` leaves the same mark, and pluggy understands this one.
    pluggy itself is not imported: its modules would be a fifth of what an activation loads.

    Args:
        function: A function or method whose name is that of a hook.
        **options: ``specname``, the hook's name where the function has another one. pluggy's
            other options are about the order of calls; core calls one plugin at a time.

    Returns:
        The function itself; without one, a decorator.
    """
    unknown = options.keys() - _IMPL_OPTIONS.keys()
    if unknown:
        raise TypeError(f"hookimpl() got an unexpected keyword argument {min(unknown)!r}")

    def mark(implementation: _Function) -> _Function:
        vars(implementation)[IMPL_MARK] = {**_IMPL_OPTIONS, **options}
        return implementation

    return mark if function is None else mark(function)


def hookspec(function: _Function) -> _Function:
    """Marks a specification, in pluggy's form; used in `cuda_morph.hookspecs` only."""
    vars(function)[f"{PROJECT}_spec"] = {
        "firstresult": False,
        "historic": False,
        "warn_on_impl": None,
        "warn_on_impl_args": None,
    }
    return function
