"""Refused names: functions and classes that raise with a reason and a replacement.

The objects stay PyTorch's own, so annotations, ``isinstance`` and subclasses keep working; what
is refused is the call.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from cuda_morph.device.answers import refusal

if TYPE_CHECKING:
    from cuda_morph.api_table import ApiRow
    from cuda_morph.device.layer import LayerContext


def refuse_class(context: LayerContext, cls: type, row: ApiRow) -> None:
    """Makes constructing `cls`, and calling its static methods, raise `RefusedError`.

    Args:
        context: Where changes are recorded.
        cls: A class of PyTorch.
        row: The row that says why.
    """
    journal = context.journal
    refuse = context.count_calls(
        row.name, refusal(row.name, row.note, row.replacement, context.backend)
    )
    own: dict[str, Any] = dict(vars(cls))
    constructor = own.get("__new__")
    inherited: Any = cls.__new__
    if isinstance(constructor, staticmethod):
        journal.redirect_function(_plain(constructor), refuse)
    elif inherited is not object.__new__:
        journal.set_attribute(cls, "__new__", staticmethod(refuse))
    elif isinstance(own.get("__init__"), types.FunctionType):
        journal.redirect_function(own["__init__"], refuse)
    else:
        journal.set_attribute(cls, "__init__", refuse)
    for value in own.values():
        if isinstance(value, staticmethod) and value is not constructor:
            journal.redirect_function(_plain(value), refuse)
    finaliser = own.get("__del__")
    if isinstance(finaliser, types.FunctionType):
        # An instance whose constructor was refused has none of what the finaliser frees.
        journal.redirect_function(finaliser, _nothing)


def _plain(method: Any) -> types.FunctionType:
    function: types.FunctionType = method.__func__
    return function


def _nothing(*_args: Any) -> None:
    """Frees nothing."""


def refused_class(context: LayerContext, row: ApiRow) -> type:
    """Returns a class that takes the place of one of ``torch._C`` and cannot be constructed."""
    refuse = context.count_calls(
        row.name, refusal(row.name, row.note, row.replacement, context.backend)
    )
    return type(row.name.rpartition(".")[2], (), {"__new__": staticmethod(refuse)})
