"""Copies of functions whose bodies are about to be exchanged."""

from __future__ import annotations

import types


def function_copy(function: types.FunctionType) -> types.FunctionType:
    """Returns a function with the present body, which goes on when the body is exchanged."""
    copy = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy
