"""The declaration of an operator: a JSON file, read strictly."""

from __future__ import annotations

import keyword
import math
import re
from typing import TYPE_CHECKING, Any

from cuda_morph.errors import SettingError
from cuda_morph.frozen_record import frozen_record
from cuda_morph.json_input import read_object
from cuda_morph.scaffolding.operator_expression import FUNCTIONS, translate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

KINDS = ("elementwise", "reduction", "matmul")
DTYPES = {
    "float16": ("at::Half", "float", 2),
    "bfloat16": ("at::BFloat16", "float", 2),
    "float32": ("float", "float", 4),
    "float64": ("double", "double", 8),
    "int32": ("int32_t", "int32_t", 4),
    "int64": ("int64_t", "int64_t", 8),
}
"""Dtype to its C++ type, the type it is computed in, and its bytes."""
REDUCTIONS = ("sum", "max", "min")
LEADING = "..."
"""First entry of a shape: any number of dimensions, the same for all tensors that have it."""

_IDENTIFIER = re.compile(r"[a-z](?:_?[a-z0-9])*_?", re.ASCII)
_SYMBOL = re.compile(r"[a-z][a-z0-9_]{0,20}", re.ASCII)
_LONGEST = 40
_MOST_INPUTS = 8
_LARGEST_ALIGNMENT = 4096
_LARGEST_FILE = 1 << 20
_LARGEST_TENSOR = 1 << 40
"""Bytes: the tests make tensors of the declared sizes."""
_HINT = "cuda-morph scaffold OPNAME --kind KIND writes a declaration to start from: its spec.json."
_PAIR = 2
_CPP_WORDS = frozenset({
    "alignas", "alignof", "and", "asm", "auto", "bitand", "bitor", "bool", "break", "case",
    "catch", "char", "compl", "concept", "const", "constexpr", "continue", "default",
    "delete", "do", "double", "dynamic_cast", "else", "enum", "explicit", "export", "extern",
    "false", "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable",
    "namespace", "new", "noexcept", "not", "nullptr", "operator", "or", "private",
    "protected", "public", "register", "requires", "return", "short", "signed", "sizeof",
    "static", "struct", "switch", "template", "this", "throw", "true", "try", "typedef",
    "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile",
    "wchar_t", "while", "xor", "main", "std", "torch", "at", "linux", "unix", "errno",
    "assert", "stdin", "stdout", "stderr", "abort", "exit"
})  # fmt: skip
"""Keywords of C++, and names that its headers or PyTorch's have taken."""
_OWN_WORDS = frozenset({
    "compute_t", "element_t", "grad", "ctx", "inputs", "output", "reference", "load", "check",
    "check_shapes", "compute", "combine", "ready", "ready_left", "ready_right", "result",
    "source", "source_left", "source_right", "target", "size", "index", "rows", "columns",
    "inner", "row", "column", "found", "values", "tensor", "bytes", "library", "pytest",
    "tensors", "sizes", "value"
})  # fmt: skip
"""Names that the templates use themselves."""
_KEYS = {"name", "kind", "inputs", "outputs", "expression", "gradients", "reduce", "alignment"}


@frozen_record
class TensorSpec:
    """One input or output."""

    name: str
    dtype: str
    shape: tuple[str | int, ...]


@frozen_record
class OperatorSpec:
    """An operator; everything was found good."""

    name: str
    kind: str
    inputs: tuple[TensorSpec, ...]
    output: TensorSpec
    expression: str
    gradients: Mapping[str, str]
    reduce: str
    alignment: int
    """Bytes of the last dimension of each input are a multiple of it; 1: any."""

    @property
    def dtype(self) -> str:
        """The one dtype of all tensors."""
        return self.output.dtype

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return DTYPES[self.dtype][2]


def example(name: str, kind: str) -> dict[str, Any]:
    """Gives the declaration that stands where none was written.

    Args:
        name: Of the operator.
        kind: One of `KINDS`.

    Returns:
        A declaration as the file would have it.
    """
    made: dict[str, Any] = {"name": name, "kind": kind}
    shapes: dict[str, list[str]] = {
        "elementwise": {"x": ["...", "n"], "y": ["...", "n"], "out": ["...", "n"]},
        "reduction": {"x": ["...", "n"], "out": ["..."]},
        "matmul": {"a": ["m", "k"], "b": ["k", "n"], "out": ["m", "n"]},
    }[kind]
    tensors = [{"name": n, "dtype": "float32", "shape": s} for n, s in shapes.items()]
    made |= {"inputs": tensors[:-1], "outputs": tensors[-1:]}
    if kind == "elementwise":
        made |= {"expression": "x + y", "gradients": {"x": "grad", "y": "grad"}}
    if kind == "reduction":
        made["reduce"] = "sum"
    return made


def read_declaration(path: Path) -> dict[str, Any]:
    """Reads the file of a declaration.

    Args:
        path: A JSON file.

    Returns:
        What it holds.

    Raises:
        MorphError: It cannot be read.
        SettingError: It is no JSON object of a sensible size.
    """
    return read_object(path, hint=_HINT, largest=_LARGEST_FILE)


def read_spec(content: Mapping[str, Any], *, least_alignment: int = 1) -> OperatorSpec:
    """Checks a declaration.

    Args:
        content: As in the file.
        least_alignment: What the target needs; also the default.

    Returns:
        The operator.

    Raises:
        SettingError: The declaration is wrong in the way that is named.
    """
    unknown = sorted(set(map(str, content)) - _KEYS)
    _need(not unknown, f"unknown: {', '.join(unknown)[:80]}")
    name, kind = content.get("name"), content.get("kind")
    _need(isinstance(name, str) and _is_word(name), f"{name!r:.60} is no name of an operator")
    _need(kind in KINDS, f"the kind must be one of {', '.join(KINDS)}, not {kind!r:.60}")
    inputs = tuple(_tensor(item) for item in _list(content, "inputs"))
    outputs = tuple(_tensor(item) for item in _list(content, "outputs"))
    _need(1 <= len(inputs) <= _MOST_INPUTS, f"1 to {_MOST_INPUTS} inputs are needed")
    _need(len(outputs) == 1, "one output is needed")
    names = [tensor.name for tensor in (*inputs, *outputs)]
    _need(len(set(names)) == len(names), "two tensors have the same name")
    dtypes = {tensor.dtype for tensor in (*inputs, *outputs)}
    _need(len(dtypes) == 1, f"all tensors must have one dtype, not {', '.join(sorted(dtypes))}")
    spec = OperatorSpec(
        name=str(name),
        kind=str(kind),
        inputs=inputs,
        output=outputs[0],
        expression=str(content.get("expression", "")),
        gradients=_gradients(content),
        reduce=str(content.get("reduce", "sum")),
        alignment=_alignment(content.get("alignment", least_alignment), least_alignment),
    )
    for tensor in (*spec.inputs, spec.output):
        fixed = math.prod(size for size in tensor.shape if isinstance(size, int)) * spec.itemsize
        _need(fixed <= _LARGEST_TENSOR, f"{tensor.name} would have {fixed:,} bytes or more")
    _check_kind(spec, content)
    _check_alignment(spec)
    return spec


def _check_kind(spec: OperatorSpec, content: Mapping[str, Any]) -> None:
    shapes = [tensor.shape for tensor in spec.inputs]
    target = spec.output.shape
    if spec.kind == "elementwise":
        _need(len({*shapes, target}) == 1, "all tensors of an elementwise operator have one shape")
        names = {tensor.name for tensor in spec.inputs}
        whole = spec.dtype.startswith("int")
        translate(spec.expression, names, whole=whole)
        wrong = sorted(set(spec.gradients) - names)
        _need(not wrong, f"gradients of no input: {', '.join(wrong)[:80]}")
        _need(not (whole and spec.gradients), "whole numbers have no gradients")
        for formula in spec.gradients.values():
            translate(formula, {*names, "grad"})
        return
    _need("expression" not in content, f"a {spec.kind} has no expression")
    _need(not spec.gradients, f"gradients are written for elementwise operators, not {spec.kind}")
    if spec.kind == "reduction":
        _need(len(shapes) == 1, "a reduction has one input")
        _need(target == shapes[0][:-1], "a reduction takes away the last dimension")
        _need(spec.reduce in REDUCTIONS, f"reduce is one of {', '.join(REDUCTIONS)}")
        return
    _need("reduce" not in content, "a matmul has no reduce")
    pair = len(shapes) == _PAIR and all(len(shape) == _PAIR for shape in (*shapes, target))
    _need(pair, "a matmul has two inputs of two dimensions")
    _need(LEADING not in {*shapes[0], *shapes[1]}, "a matmul has no leading dimensions here")
    inner = shapes[0][1] == shapes[1][0]
    _need(
        inner and target == (shapes[0][0], shapes[1][1]), "the shapes must be m,k and k,n and m,n"
    )


def _check_alignment(spec: OperatorSpec) -> None:
    least = spec.alignment
    _need(
        least == 1 or least % spec.itemsize == 0,
        f"the alignment of {least} bytes is no multiple of {spec.dtype}'s {spec.itemsize}",
    )
    for tensor in spec.inputs:
        last = tensor.shape[-1]
        if isinstance(last, int) and last * spec.itemsize % least:
            size = last * spec.itemsize
            raise _wrong(
                f"the last dimension of {tensor.name} has {size} bytes, no multiple of {least}",
                f"Take a multiple of {least // spec.itemsize} elements.",
            )


def _tensor(item: Any) -> TensorSpec:
    _need(
        isinstance(item, dict) and set(item) == {"name", "dtype", "shape"},
        "a tensor has name, dtype and shape",
    )
    name, dtype, shape = item["name"], item["dtype"], item["shape"]
    good = isinstance(name, str) and _is_word(name) and name not in FUNCTIONS
    _need(good, f"{name!r:.60} is no name of a tensor")
    _need(
        isinstance(dtype, str) and dtype in DTYPES,
        f"the dtype {dtype!r:.60} is none of {', '.join(DTYPES)}",
    )
    _need(isinstance(shape, list) and 1 <= len(shape) <= _MOST_INPUTS, f"{name} needs a shape")
    for place, size in enumerate(shape):
        symbol = isinstance(size, str) and (
            bool(_SYMBOL.fullmatch(size)) or (size == LEADING and place == 0)
        )
        number = type(size) is int and 0 < size < 1 << 31
        _need(symbol or number, f"{size!r:.60} is no size of a dimension of {name}")
    return TensorSpec(name=name, dtype=dtype, shape=tuple(shape))


def _alignment(value: Any, least: int) -> int:
    good = type(value) is int and 0 < value <= _LARGEST_ALIGNMENT and not value & (value - 1)
    _need(
        good, f"the alignment must be a power of two up to {_LARGEST_ALIGNMENT}, not {value!r:.60}"
    )
    _need(value % least == 0, f"the target needs an alignment of {least} bytes, not {value}")
    return int(value)


def _gradients(content: Mapping[str, Any]) -> dict[str, str]:
    found = content.get("gradients", {})
    good = isinstance(found, dict) and all(isinstance(text, str) for text in found.values())
    _need(good, "gradients must be formulas by name of input")
    return dict(found)


def _list(content: Mapping[str, Any], key: str) -> list[Any]:
    found = content.get(key)
    if not isinstance(found, list):
        raise _wrong(f"{key} must be a list", "")
    return found


def _is_word(word: str) -> bool:
    taken = keyword.iskeyword(word) or word in _CPP_WORDS or word in _OWN_WORDS
    return bool(_IDENTIFIER.fullmatch(word)) and len(word) <= _LONGEST and not taken


def _need(condition: object, problem: str) -> None:
    if not condition:
        raise _wrong(problem, "")


def _wrong(problem: str, hint: str) -> SettingError:
    return SettingError(
        f"The operator cannot be made: {problem}.",
        hint=hint or _HINT,
    )
