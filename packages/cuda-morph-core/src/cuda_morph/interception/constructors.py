"""Replaces the constructor of a class that C code declares immutable; the class stays the same.

The part of CPython's class layout that this needs is checked before it is relied upon. The layout
is part of every CPython build (``Include/cpython/object.h``), on every platform. It is declared
field by field, so the C compiler's alignment rules apply and no offset is written down.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cuda_morph.patching import Journal, type_modified

Constructor = Callable[[type, tuple[Any, ...], dict[str, Any]], Any]
"""A constructor as C code has it: the class, positional and named arguments."""

_C_CONSTRUCTOR = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.py_object
)


def original_constructor(owner: type) -> Constructor:
    """Returns the C constructor of a class as a function.

    The interpreter's own wrapper of it, ``owner.__new__``, refuses to run once the class has a
    Python constructor, so the C function is called directly.
    """
    call: Constructor = _C_CONSTRUCTOR(type_object(owner).tp_new)
    return call


def replace_constructor(journal: Journal, owner: type, new: Callable[..., Any]) -> None:
    """Makes `owner` build its instances with a Python function.

    Args:
        journal: Receives the way back.
        owner: A class whose constructor is written in C.
        new: Called as ``new(cls, *args, **kwargs)``.
    """
    constructor = type_object(owner).tp_new
    inheriting = [cls for cls in _with_subclasses(owner) if type_object(cls).tp_new == constructor]
    journal.set_type_attribute(owner, "__new__", staticmethod(new))
    journal.on_rollback(lambda: _set_constructor(inheriting, constructor))
    _set_constructor(inheriting, python_constructor())


def _with_subclasses(owner: type) -> Iterator[type]:
    yield owner
    subclasses: list[type] = type.__subclasses__(owner)
    for subclass in subclasses:
        yield from _with_subclasses(subclass)


def _set_constructor(classes: Iterable[type], address: int) -> None:
    for cls in classes:
        type_object(cls).tp_new = address
        type_modified(cls)


def cuda_event_constructor(construct: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a ``torch.Event.__new__`` that also takes CUDA's positional options.

    ``torch.cuda.Event`` is ``torch.Event`` while active; the first parameter of the one is a
    bool, of the other a device.

    Args:
        construct: Builds the event, called as ``construct(cls, *args, **kwargs)``.
    """

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("external", None)
        if args and isinstance(args[0], bool):
            kwargs.update(zip(_EVENT_OPTIONS, args, strict=False))
            args = ()
        return construct(cls, *args, **kwargs)

    return new


_EVENT_OPTIONS = ("enable_timing", "blocking", "interprocess")


class TypeObject(ctypes.Structure):
    """``PyTypeObject`` up to ``tp_new``."""

    _fields_ = (
        ("ob_refcnt", ctypes.c_ssize_t),
        ("ob_type", ctypes.c_void_p),
        ("ob_size", ctypes.c_ssize_t),
        ("tp_name", ctypes.c_char_p),
        ("tp_basicsize", ctypes.c_ssize_t),
        ("tp_itemsize", ctypes.c_ssize_t),
        *((f"slots_{n}", ctypes.c_void_p) for n in range(15)),
        ("tp_flags", ctypes.c_ulong),
        *((f"hooks_{n}", ctypes.c_void_p) for n in range(10)),
        ("tp_base", ctypes.c_void_p),
        ("tp_dict", ctypes.c_void_p),
        ("tp_descr_get", ctypes.c_void_p),
        ("tp_descr_set", ctypes.c_void_p),
        ("tp_dictoffset", ctypes.c_ssize_t),
        ("tp_init", ctypes.c_void_p),
        ("tp_alloc", ctypes.c_void_p),
        ("tp_new", ctypes.c_void_p),
    )


def type_object(owner: type) -> TypeObject:
    """Returns the C structure of a class; it is shared, not a copy."""
    return TypeObject.from_address(id(owner))


class _Plain:
    """Has the constructor of ``object``."""


class _First:
    """Has a constructor of its own."""

    def __new__(cls) -> _First:  # noqa: PYI034 - Self is newer than Python 3.10
        return super().__new__(cls)


class _Second:
    """Has another one; the interpreter uses the same C function for both."""

    def __new__(cls) -> _Second:  # noqa: PYI034
        return super().__new__(cls)


def python_constructor() -> int:
    """Returns the address of the C function that calls a class's ``__new__``."""
    return int(type_object(_First).tp_new)


def mismatch(*classes: type) -> str:
    """Returns how this interpreter differs from the layout, or an empty string.

    Args:
        *classes: Classes whose constructors are to be replaced.
    """
    if sys.implementation.name != "cpython":
        return f"class layouts are only known for CPython, not {sys.implementation.name}"
    if object.__basicsize__ != ctypes.sizeof(ctypes.c_void_p) * 2:
        return "this build of CPython has another object layout (free-threaded or debug)"
    for owner in (int, _Plain, *classes):
        found = type_object(owner)
        facts = (found.tp_basicsize, found.tp_dictoffset, found.tp_base)
        base = id(owner.__base__) if owner.__base__ else None
        same_flags = found.tp_flags == owner.__flags__ & _UNSIGNED_LONG
        if facts != (owner.__basicsize__, owner.__dictoffset__, base) or not same_flags:
            return f"the layout of the class {owner.__qualname__} is not the known one"
    news = [type_object(owner).tp_new for owner in (object, _Plain, _First, _Second)]
    if not (news[0] == news[1] != news[2] == news[3]):
        return "constructors are not where they were expected"
    return ""


_UNSIGNED_LONG = (1 << (8 * ctypes.sizeof(ctypes.c_ulong))) - 1
