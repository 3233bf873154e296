"""The journal: every change to somebody else's object, and the way back.

This is the only module that sets attributes on foreign objects, so a rollback knows all of them.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import time
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_MISSING: Any = object()


class Journal:
    """Ordered record of reversible changes.

    Example:
        >>> journal = Journal()
        >>> journal.set_attribute(types, "example", 1)
        >>> journal.rollback()
        >>> hasattr(types, "example")
        False
    """

    __slots__ = ("_forwarders", "_undo")

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []
        self._forwarders: list[tuple[types.CodeType, dict[str, Any], str]] = []

    def __len__(self) -> int:
        return len(self._undo)

    def on_rollback(self, undo: Callable[[], object]) -> None:
        """Registers a function to call when this change is taken back."""
        self._undo.append(undo)

    def set_attribute(self, owner: Any, name: str, value: object) -> None:
        """Sets ``owner.name`` and remembers whether `owner` itself had it before.

        Args:
            owner: A module, class or object with a ``__dict__``.
            name: Attribute name.
            value: New value.
        """
        previous = vars(owner).get(name, _MISSING)

        def undo() -> None:
            if previous is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, previous)

        setattr(owner, name, value)
        self._undo.append(undo)

    def set_item(self, mapping: dict[Any, Any], key: object, value: object) -> None:
        """Sets ``mapping[key]`` reversibly."""
        previous = mapping.get(key, _MISSING)

        def undo() -> None:
            if previous is _MISSING:
                mapping.pop(key, None)
            else:
                mapping[key] = previous

        mapping[key] = value
        self._undo.append(undo)

    def update_mapping(self, mapping: dict[Any, Any], items: dict[Any, Any]) -> None:
        """Sets many items of a mapping as one reversible change."""
        previous = {key: mapping[key] for key in items if key in mapping}
        added = [key for key in items if key not in previous]

        def undo() -> None:
            mapping.update(previous)
            for key in added:
                mapping.pop(key, None)

        mapping.update(items)
        self._undo.append(undo)

    def redirect_function(
        self, function: types.FunctionType, target: Callable[..., Any]
    ) -> Callable[..., Any]:
        """Makes `function` call `target` while staying the same object.

        Early imports of the function keep working, and tables keyed by its identity (Dynamo's)
        stay right. The function keeps its parameters and defaults; only its code is exchanged.

        Args:
            function: A plain Python function of another library.
            target: Called with the same positional arguments.

        Returns:
            A function with the original body.
        """
        original = function.__code__
        unchanged = types.FunctionType(
            original,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        unchanged.__kwdefaults__ = function.__kwdefaults__
        alias = f"_cuda_morph_{function.__qualname__.replace('.', '_')}"
        namespace = function.__globals__
        namespace[alias] = target

        def undo() -> None:
            function.__code__ = original
            forget(gone)

        forwarder = _forwarding_code(original, alias)
        gone, forget = (forwarder, namespace, alias), self._forwarders.append
        function.__code__ = forwarder
        self._undo.append(undo)
        return unchanged

    def set_defaults(self, function: types.FunctionType, defaults: tuple[Any, ...]) -> None:
        """Exchanges the default arguments of a function of another library."""
        original = function.__defaults__

        def undo() -> None:
            function.__defaults__ = original

        function.__defaults__ = defaults
        self._undo.append(undo)

    def set_type_attribute(self, owner: type, name: str, value: object) -> None:
        """Sets an attribute of a class that C code declares immutable.

        The class dictionary is changed and the interpreter's method cache told so; the C slot
        behind a double-underscored name stays as it is.
        """
        namespace = type_namespace(owner)
        previous = namespace.get(name, _MISSING)

        def undo() -> None:
            if previous is _MISSING:
                namespace.pop(name, None)
            else:
                namespace[name] = previous
            type_modified(owner)

        namespace[name] = value
        type_modified(owner)
        self._undo.append(undo)

    def rollback(self) -> None:
        """Takes all changes back, last one first.

        Every step is tried even if one fails; the first failure is raised at the end.
        """
        failure: BaseException | None = None
        undo = self._undo
        while undo:
            try:
                undo.pop()()
            except Exception as error:  # noqa: BLE001, PERF203 - the other changes must still be undone
                failure = failure or error
        self._forget_targets()
        if failure is not None:
            raise failure

    def _forget_targets(self) -> None:
        """Removes the globals through which redirected functions called their targets.

        The interpreter changes threads where a function is entered, so another thread may be in
        exchanged code and not have read its global yet. It is let go on first.
        """
        forwarders = self._forwarders
        if len(sys._current_frames()) > 1:
            _let_threads_enter({id(code) for code, _, _ in forwarders})
        for _, namespace, alias in forwarders:
            namespace.pop(alias, None)
        forwarders.clear()


def _forward_0() -> Any:
    return _target()


def _forward_1(a: Any) -> Any:
    return _target(a)


def _forward_2(a: Any, b: Any) -> Any:
    return _target(a, b)


def _forward_3(a: Any, b: Any, c: Any) -> Any:
    return _target(a, b, c)


def _forward_all(*args: Any, **kwargs: Any) -> Any:
    return _target(*args, **kwargs)


def _target(*_args: Any, **_kwargs: Any) -> Any:
    raise AssertionError("only the code of the functions above is used")


_PATIENCE = 100
_MOMENT = 1e-5
_READS_TARGET = 2
"""Offset of the instruction that reads the global: it comes right after the entry."""


def _let_threads_enter(codes: set[int]) -> None:
    """Waits, at most a millisecond, until no thread is at the entry of one of the codes."""
    for _ in range(_PATIENCE):
        frames = sys._current_frames().values()
        if not any(
            id(frame.f_code) in codes and frame.f_lasti <= _READS_TARGET for frame in frames
        ):
            return
        time.sleep(_MOMENT)


_FORWARDERS = tuple(f.__code__ for f in (_forward_0, _forward_1, _forward_2, _forward_3))
_VARIADIC = 0x04 | 0x08  # CO_VARARGS | CO_VARKEYWORDS


def _forwarding_code(original: types.CodeType, alias: str) -> types.CodeType:
    """Returns code with the parameters of `original` that calls the global `alias`."""
    count = original.co_argcount
    simple = not (original.co_flags & _VARIADIC or original.co_kwonlyargcount)
    if simple and count < len(_FORWARDERS):
        template = _FORWARDERS[count].replace(
            co_varnames=original.co_varnames[:count],
            co_posonlyargcount=original.co_posonlyargcount,
        )
    else:
        template = _forward_all.__code__
    changes: dict[str, Any] = {
        "co_names": tuple(alias if name == "_target" else name for name in template.co_names),
        "co_name": original.co_name,
        "co_filename": original.co_filename,
        "co_firstlineno": original.co_firstlineno,
        # The interpreter insists on as many free variables as the function has cells.
        "co_freevars": original.co_freevars,
    }
    if hasattr(original, "co_qualname"):  # Python 3.11
        changes["co_qualname"] = original.co_qualname
    return template.replace(**changes)


def type_namespace(owner: type) -> dict[str, Any]:
    """Returns the writable dictionary behind ``owner.__dict__``."""
    for referent in gc.get_referents(vars(owner)):
        if isinstance(referent, dict):
            return referent
    raise TypeError(f"{owner.__qualname__} has no namespace dictionary")


def type_modified(owner: type) -> None:
    """Tells the interpreter that a class dictionary was changed behind its back."""
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))
