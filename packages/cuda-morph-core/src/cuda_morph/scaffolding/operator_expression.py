"""Formulas of operators: read once, written as C++ and as PyTorch; nothing else gets through."""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

from cuda_morph.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Collection

FUNCTIONS = frozenset({"abs", "cos", "erf", "exp", "log", "sin", "sqrt", "tanh"})
"""Functions of one number that C++ and PyTorch have under the same name."""
_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
}
_LONGEST = 500
_LARGEST = 1e30


def translate(text: str, names: Collection[str], *, whole: bool = False) -> tuple[str, str]:
    """Writes a formula in both languages.

    Args:
        text: Sums, products, quotients and `FUNCTIONS` of names and numbers, as Python has them.
        names: What may be named; the formula must name one of them.
        whole: Whether it is about whole numbers, which have no quotients and functions here.

    Returns:
        The C++ expression and the PyTorch expression.

    Raises:
        SettingError: It is something else.
    """
    try:
        tree = _parse(text, names)
        return _write(tree, names, whole, "std::"), _write(tree, names, whole, "torch.")
    except (ValueError, SyntaxError, RecursionError, MemoryError, OverflowError) as error:
        raise SettingError(
            f"The formula {text[:80]!r} cannot be used: {error}.",
            hint="Write it with + - * / ( ), numbers, names of inputs and "
            f"{', '.join(sorted(FUNCTIONS))}.",
        ) from error


def _parse(text: str, names: Collection[str]) -> ast.expr:
    if len(text) > _LONGEST:
        raise ValueError(f"it has more than {_LONGEST} characters")
    tree = ast.parse(text, mode="eval").body
    if not {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & set(names):
        raise ValueError(f"it names none of {', '.join(sorted(names))}")
    return tree


def _write(node: ast.expr, names: Collection[str], whole: bool, prefix: str) -> str:
    if isinstance(node, ast.Name) and node.id in names:
        return node.id
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return _number(value, whole, prefix)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return f"(-{_write(node.operand, names, whole, prefix)})"
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        sign = _SIGNS[type(node.op)]
        if whole and sign == "/":
            raise ValueError("whole numbers are not divided here")
        left = _write(node.left, names, whole, prefix)
        return f"({left} {sign} {_write(node.right, names, whole, prefix)})"
    if isinstance(node, ast.Call) and not node.keywords and len(node.args) == 1:
        function = node.func.id if isinstance(node.func, ast.Name) else ""
        if function in FUNCTIONS and not whole:
            return f"{prefix}{function}({_argument(node.args[0], names, prefix)})"
    raise ValueError(f"{ast.unparse(node)[:60]!r} is not allowed in it")


def _argument(node: ast.expr, names: Collection[str], prefix: str) -> str:
    """Functions of PyTorch take tensors: one of a number alone has no place in a formula."""
    if not any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node)):
        raise ValueError(f"{ast.unparse(node)[:60]!r} is no function of an input")
    return _write(node, names, False, prefix)


def _number(value: float, whole: bool, prefix: str) -> str:
    if not math.isfinite(value) or abs(value) > _LARGEST:
        raise ValueError("a number is too large")
    if whole and (not isinstance(value, int) or abs(value) >= 1 << 31):
        raise ValueError("a number is not whole, or too large")
    text = repr(value) if whole else repr(float(value))
    return f"compute_t({text})" if prefix == "std::" else text
