"""The part of CPython's class layout that tier T3 needs, checked before it is relied upon.

The layout is part of every CPython build (``Include/cpython/object.h``), on every platform. It is
declared field by field, so the C compiler's alignment rules apply and no offset is written down.
"""

from __future__ import annotations

import ctypes
import sys


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
