"""Environment variables, libraries and tools of CUDA in Python code."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from cuda_morph.scan import cuda_text
from cuda_morph.scan.bindings import text_of
from cuda_morph.scan.device_positions import last_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cuda_morph.scan.bindings import Bindings

Found = tuple[str, ast.AST, str]

_READERS = {"getenv", "get", "setdefault", "pop", "setenv", "delenv", "putenv", "unsetenv"}
_ENVIRONMENT = {"environ", "env", "environment", "monkeypatch", "os", "envs", "env_vars"}
_LOADERS = {"CDLL", "LoadLibrary", "find_library", "PyDLL", "WinDLL"}
_STARTERS = ("subprocess.", "os.system", "os.popen", "shutil.which", "os.exec", "os.spawn")


def of_call(node: ast.Call, names: Bindings) -> Iterator[Found]:
    """Yields what a call reads, loads or starts."""
    function = last_name(node.func)
    first = text_of(node.args[0]) if node.args else None
    if first and function in _READERS and _is_environment(node.func, names):
        yield from _variable(node.args[0])
    if function in {"dict", "update"} or _is_environment(node.func, names):
        for keyword in node.keywords:
            if keyword.arg and cuda_text.VARIABLE.fullmatch(keyword.arg):
                yield cuda_text.variable_rule(keyword.arg), keyword, keyword.arg
    if first and function in _LOADERS and cuda_text.CUDA_LIBRARY.fullmatch(first):
        yield "CM504", node, first
    if function in {"RawKernel", "RawModule"} or function == "SourceModule":
        yield "CM505", node, function
    qualified = names.resolve(node.func) or ""
    if qualified.startswith(_STARTERS) and node.args:
        yield from _tool(node.args[0])


def of_compare(node: ast.Compare) -> Iterator[Found]:
    """Yields the variables of ``"CUDA_HOME" in os.environ``."""
    if any(last_name(side) in _ENVIRONMENT for side in node.comparators):
        yield from _variable(node.left)


def of_assign(node: ast.Assign) -> Iterator[Found]:
    """Yields the variable whose name a constant holds: ``NAME = "CUDA_VISIBLE_DEVICES"``."""
    if text_of(node.value) in {"CUDA_VISIBLE_DEVICES", "PYTORCH_CUDA_ALLOC_CONF"}:
        yield from _variable(node.value)


def of_dict(node: ast.Dict) -> Iterator[Found]:
    """Yields the variables among the keys of a dictionary."""
    for key in node.keys:
        if key is not None:
            yield from _variable(key)


def of_subscript(node: ast.Subscript) -> Iterator[Found]:
    """Yields the variable of ``os.environ["CUDA_VISIBLE_DEVICES"]``."""
    if last_name(node.value) in _ENVIRONMENT:
        yield from _variable(node.slice)


def _variable(node: ast.AST) -> Iterator[Found]:
    text = text_of(node)
    if text and cuda_text.VARIABLE.fullmatch(text):
        yield cuda_text.variable_rule(text), node, text


def _tool(node: ast.AST) -> Iterator[Found]:
    parts = node.elts[:1] if isinstance(node, (ast.List, ast.Tuple)) else [node]
    for part in parts:
        start = part.values[0] if isinstance(part, ast.JoinedStr) and part.values else part
        match = cuda_text.TOOL.match(text_of(start) or "")
        if match:
            yield "CM715", node, match[1]


def _is_environment(function: ast.AST, names: Bindings) -> bool:
    if (names.resolve(function) or "").startswith(("os.environ", "os.getenv", "os.putenv")):
        return True
    if last_name(function) in {"getenv", "setenv", "delenv"}:
        return True
    return isinstance(function, ast.Attribute) and last_name(function.value) in _ENVIRONMENT
