"""Replaces the constructor of a class that C code declares immutable; the class stays the same."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cuda_morph.interception.class_layout import python_constructor, type_object
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
