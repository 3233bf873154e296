"""What the names of a Python file stand for: imports and aliases, scope by scope.

``import torch.cuda as tc``, ``from torch.cuda.amp import autocast`` and ``cuda = torch.cuda`` all
lead to qualified names. A name that is bound to anything else in an inner scope hides the outer
one; a name bound twice in one scope keeps its first known meaning, as after ``try: import``.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_OWN_SCOPE = (*_FUNCTIONS, ast.ClassDef)
_IMPORTERS = {"importlib.import_module", "importlib.util.find_spec", "__import__"}


class Bindings:
    """A stack of scopes."""

    def __init__(self) -> None:
        self._scopes: list[tuple[bool, dict[str, str | None]]] = []

    def enter(self, node: ast.AST) -> None:
        """Enters the scope that a module, class or function opens."""
        names: dict[str, str | None] = {}
        if isinstance(node, _FUNCTIONS):
            names.update(dict.fromkeys(_parameters(node.args)))
        self._scopes.append((isinstance(node, ast.ClassDef), names))
        body = getattr(node, "body", [])
        for statement in own_statements(body if isinstance(body, list) else []):
            self._bind(statement, names)

    def leave(self) -> None:
        """Leaves the innermost scope."""
        self._scopes.pop()

    def _bind(self, node: ast.stmt, names: dict[str, str | None]) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                meaning = alias.name if alias.asname else bound
                names[bound] = names.get(bound) or meaning
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0 and node.module:
                for alias in node.names:
                    bound = alias.asname or alias.name
                    names[bound] = names.get(bound) or f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    names[target.id] = names.get(target.id) or self.resolve(node.value)
        elif isinstance(node, _OWN_SCOPE) and not isinstance(node, ast.Lambda):
            names.setdefault(node.name, None)

    def resolve(self, node: ast.AST) -> str | None:
        """Returns the qualified name that an expression stands for, if it does.

        Args:
            node: A name, an attribute of one, or an import by function.
        """
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        root: str | None = None
        if isinstance(node, ast.Name):
            root = self._look_up(node.id)
        elif isinstance(node, ast.Call):
            root = self._result(node)
        return None if root is None else ".".join([root, *reversed(parts)])

    def _look_up(self, name: str) -> str | None:
        for depth, (is_class, names) in enumerate(reversed(self._scopes)):
            # A class's names are not seen by the functions in it.
            if name in names and (not is_class or depth == 0):
                return names[name]
        return "__import__" if name == "__import__" else None

    def _result(self, node: ast.Call) -> str | None:
        """What a call gives: a module imported by function, an attribute read by name."""
        values = [text_of(argument) for argument in node.args[:2]]
        if isinstance(node.func, ast.Name) and node.func.id == "getattr":
            base = self.resolve(node.args[0]) if node.args else None
            return f"{base}.{values[1]}" if base and len(values) > 1 and values[1] else None
        function = self.resolve(node.func)
        return values[0] if function in _IMPORTERS and values and values[0] else None


def text_of(node: ast.AST) -> str | None:
    """Returns the text of a string literal, else ``None``."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def own_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements of one scope, those of ``if``, ``try`` and loops included."""
    for statement in body:
        yield statement
        if isinstance(statement, _OWN_SCOPE):
            continue
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            for part in getattr(statement, field, ()):
                if isinstance(part, ast.stmt):
                    yield from own_statements([part])
                else:  # an exception handler, a case
                    yield from own_statements(part.body)


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    groups = (arguments.posonlyargs, arguments.args, arguments.kwonlyargs)
    yield from (argument.arg for group in groups for argument in group)
    yield from (argument.arg for argument in (arguments.vararg, arguments.kwarg) if argument)
