"""Device strings and collective backends in the places where they mean one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from cuda_morph.scan import cuda_text
from cuda_morph.scan.bindings import text_of
from cuda_morph.scan.device_positions import (
    BACKEND_NAME,
    DEVICE_NAME,
    compares_device,
    holds_device,
    last_name,
    takes_device,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeGuard

    from cuda_morph.scan.bindings import Bindings
    from cuda_morph.scan.python_detectors import Report

_GROUP_FUNCTIONS = {
    "torch.distributed.init_process_group": 0,
    "torch.distributed.distributed_c10d.init_process_group": 0,
    "torch.distributed.new_group": 2,
    "torch.distributed.Backend": 0,
    "torch.distributed.is_backend_available": 0,
}
_ASSERTIONS = {"assertEqual", "assertNotEqual", "assertIn", "assertNotIn", "assert_equal"}
_OPTION_CALLS = {"add_argument", "option", "DEFINE_string", "Field", "field", "Option"}


class DeviceStrings:
    """Detectors of device strings.

    Args:
        names: The names in force where the walk is.
        report: Takes the findings.
    """

    def __init__(self, names: Bindings, report: Report) -> None:
        self._names = names
        self._report = report

    def call(self, node: ast.Call) -> None:
        """Arguments that are devices or backends."""
        name = self._names.resolve(node.func)
        if name == "torch.load":
            for argument in node.args[1:2]:
                self._map_location(argument)
        elif takes_device(node, name):
            for argument in node.args:
                self._device(argument, integers=self._moves(node))
        self._backend_arguments(node, name)
        option = self._option(node)
        for keyword in node.keywords:
            self._keyword(keyword, option)
        self._starts_with(node)
        self._parametrized(node)
        self._asserted(node)
        for argument in node.args:
            self._legacy_type(argument)

    def _legacy_type(self, node: ast.AST) -> None:
        text = text_of(node)
        if text and cuda_text.LEGACY_TYPE.fullmatch(text):
            self._report("CM204", node, text)

    def _moves(self, node: ast.Call) -> bool:
        return isinstance(node.func, ast.Attribute) and node.func.attr == "to"

    def _keyword(self, keyword: ast.keyword, option: str) -> None:
        name = keyword.arg or ""
        if name == "map_location":
            self._map_location(keyword.value)
        elif name == "device_types":
            if text_of(keyword.value) in {"cuda", "CUDA"}:
                self._report("CM506", keyword.value, "device_types")
            else:
                self._device(keyword.value)
        elif DEVICE_NAME.fullmatch(name):
            self._device(keyword.value, integers=name == "device")
        elif BACKEND_NAME.fullmatch(name):
            self._backend(keyword.value)
        elif name == "default" and option:
            if DEVICE_NAME.fullmatch(option):
                self._device(keyword.value)
            elif BACKEND_NAME.fullmatch(option):
                self._backend(keyword.value)

    def _option(self, node: ast.Call) -> str:
        """The name of the command-line option or field that a call declares, if it does."""
        if last_name(node.func) not in _OPTION_CALLS:
            return ""
        texts = [text_of(argument) or "" for argument in node.args]
        longest = max(texts, key=len, default="")
        return longest.lstrip("-").replace("-", "_")

    def _backend_arguments(self, node: ast.Call, name: str | None) -> None:
        position = _GROUP_FUNCTIONS.get(name or "")
        if position is None and last_name(node.func) == "init_process_group":
            position = 0
        if position is not None and len(node.args) > position:
            self._backend(node.args[position])

    def _starts_with(self, node: ast.Call) -> None:
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr != "startswith":
            return
        text = text_of(node.args[0]) if node.args else None
        if text and cuda_text.DEVICE_START.fullmatch(text) and compares_device(function.value):
            self._report("CM104", node, text, ast.unparse(function.value))

    def _asserted(self, node: ast.Call) -> None:
        """``self.assertEqual(x.device.type, "cuda")``, a comparison too."""
        if last_name(node.func) not in _ASSERTIONS:
            return
        first, *others = node.args[:2] or (node,)
        for one, other in ((first, others[0]), (others[0], first)) if others else ():
            text = text_of(one) or ""
            if cuda_text.DEVICE.fullmatch(text) and compares_device(other):
                self._report("CM104", one, text, ast.unparse(other)[:80])

    def _parametrized(self, node: ast.Call) -> None:
        """``pytest.mark.parametrize("x, device", [(1, "cpu"), (2, "cuda")])``."""
        if last_name(node.func) != "parametrize" or len(node.args) < 2:  # noqa: PLR2004
            return
        names = _parameter_names(node.args[0])
        devices = [number for number, name in enumerate(names) if DEVICE_NAME.fullmatch(name)]
        if devices and len(names) == 1:
            self._device(node.args[1])
            return
        for row in getattr(node.args[1], "elts", ()):
            cells = row.args if _is_parameter(row) else getattr(row, "elts", ())
            for number in devices:
                for cell in cells[number : number + 1]:
                    self._device(cell)

    # Assignments and defaults ------------------------------------------------------------------

    def assign(self, node: ast.Assign) -> None:
        """``device = "cuda"``."""
        for target in node.targets:
            self._to(target, node.value)

    def annotated_assign(self, node: ast.AnnAssign) -> None:
        """``device: str = "cuda"``."""
        if node.value is not None:
            self._to(node.target, node.value)

    def named_expression(self, node: ast.NamedExpr) -> None:
        """``(device := "cuda")``."""
        self._to(node.target, node.value)

    def _to(self, target: ast.AST, value: ast.AST) -> None:
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
            for one, other in zip(target.elts, value.elts, strict=False):
                self._to(one, other)
        elif last_name(target) == "map_location":
            self._map_location(value)
        elif holds_device(target):
            self._device(value)
        elif BACKEND_NAME.fullmatch(last_name(target)):
            self._backend(value)
            self._device(value)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        """Default values of parameters; what a function named after a device returns."""
        arguments = node.args
        plain = [*arguments.posonlyargs, *arguments.args]
        defaults = arguments.defaults
        pairs = list(zip(plain[len(plain) - len(defaults) :], defaults, strict=True))
        pairs += [
            (name, value)
            for name, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if value is not None
        ]
        for parameter, value in pairs:
            self._to(ast.Name(id=parameter.arg, ctx=ast.Store()), value)
        if not isinstance(node, ast.Lambda) and DEVICE_NAME.fullmatch(node.name):
            for part in ast.walk(node):
                if isinstance(part, ast.Return) and part.value is not None:
                    self._device(part.value)
            for decorator in node.decorator_list:
                self._fixture(decorator)

    def _fixture(self, decorator: ast.AST) -> None:
        """``@pytest.fixture(params=["cpu", "cuda"])`` of a function named after a device."""
        if isinstance(decorator, ast.Call) and last_name(decorator.func) == "fixture":
            for keyword in decorator.keywords:
                if keyword.arg == "params":
                    self._device(keyword.value)

    def loop(self, node: ast.For | ast.comprehension) -> None:
        """``for device in ("cpu", "cuda")``."""
        if holds_device(node.target):
            self._device(node.iter)

    def dictionary(self, node: ast.Dict) -> None:
        """``{"device": "cuda"}``."""
        for key, value in zip(node.keys, node.values, strict=True):
            text = text_of(key) if key is not None else None
            if text is None:
                continue
            if text == "map_location":
                self._map_location(value)
            elif DEVICE_NAME.fullmatch(text):
                self._device(value)
            elif BACKEND_NAME.fullmatch(text):
                self._backend(value)

    # Comparisons -------------------------------------------------------------------------------

    def compare(self, node: ast.Compare) -> None:
        """``device.type == "cuda"``, ``"cuda" in device``, ``backend == "nccl"``."""
        sides = [node.left, *node.comparators]
        for side in sides:
            self._legacy_type(side)
            others = [part for other in sides if other is not side for part in _values(other)]
            for text_node in _texts(side):
                text = text_of(text_node) or ""
                if cuda_text.DEVICE.fullmatch(text) and any(map(compares_device, others)):
                    self._report("CM104", node, text, ast.unparse(others[0])[:80])
                elif cuda_text.BACKEND.fullmatch(text) and any(map(_compares_backend, others)):
                    self._report("CM301", node, text)

    def match(self, node: ast.Match) -> None:
        """``match device.type: case "cuda":``."""
        if not compares_device(node.subject):
            return
        for case in node.cases:
            for part in ast.walk(case.pattern):
                text = text_of(part.value) if isinstance(part, ast.MatchValue) else None
                if text and cuda_text.DEVICE.fullmatch(text):
                    self._report("CM104", part, text, ast.unparse(node.subject)[:80])

    # Values ------------------------------------------------------------------------------------

    def _map_location(self, node: ast.AST) -> None:
        if isinstance(node, ast.Dict):
            for part in (*node.keys, *node.values):
                if part is not None:
                    self._map_location(part)
            return
        for value in _values(node):
            if _device_text(value) is not None:
                self._report("CM107", value, _device_text(value) or "")

    def _device(self, node: ast.AST, *, integers: bool = False) -> None:
        for value in _values(node):
            text = _device_text(value)
            if text is not None:
                built = text_of(value) is None
                self._report("CM106" if built else "CM101", value, text)
            elif integers and _is_index(value):
                self._report("CM105", value, ast.unparse(value))

    def _backend(self, node: ast.AST) -> None:
        for value in _values(node):
            text = text_of(value)
            if text is not None and cuda_text.BACKEND.fullmatch(text):
                self._report("CM301", value, text)


def _values(node: ast.AST) -> Iterator[ast.AST]:
    """Yields what an expression may give: the sides of a choice, the parts of a collection."""
    if isinstance(node, ast.IfExp):
        yield from _values(node.body)
        yield from _values(node.orelse)
    elif isinstance(node, ast.BoolOp):
        for part in node.values:
            yield from _values(part)
    elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        for part in node.elts:
            yield from _values(part)
    elif isinstance(node, ast.Starred):
        yield from _values(node.value)
    elif _is_parameter(node):
        for part in node.args:
            yield from _values(part)
    else:
        yield node


def _is_parameter(node: ast.AST) -> TypeGuard[ast.Call]:
    """Tells ``pytest.param("cuda", marks=...)``."""
    return isinstance(node, ast.Call) and last_name(node.func) == "param"


def _parameter_names(node: ast.AST) -> list[str]:
    """The names that a test is parametrized over, in one string or several."""
    texts = [text_of(node)] if text_of(node) else map(text_of, getattr(node, "elts", ()))
    return [name.strip() for text in texts for name in (text or "").split(",") if name.strip()]


def _texts(node: ast.AST) -> Iterator[ast.AST]:
    return (value for value in _values(node) if text_of(value) is not None)


def _device_text(node: ast.AST) -> str | None:
    """The device string that a node is or builds, parts that vary shown as ``{}``."""
    text = text_of(node)
    if text is not None:
        return text if cuda_text.DEVICE.fullmatch(text) else None
    start, shown = None, ""
    if isinstance(node, ast.JoinedStr) and node.values:
        start = text_of(node.values[0])
        shown = "".join(text_of(part) or "{}" for part in node.values)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
        start = text_of(node.left)
        if isinstance(node.op, ast.Mod) and start:
            start, _, _ = start.partition("%")
        shown = f"{start}{{}}"
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        template = text_of(node.func.value) if node.func.attr == "format" else None
        start = template.partition("{")[0] if template else None
        shown = f"{start}{{}}"
    return shown if start and cuda_text.DEVICE_START.fullmatch(start) else None


def _is_index(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _compares_backend(node: ast.AST) -> bool:
    name = last_name(node)
    return bool(BACKEND_NAME.fullmatch(name)) or name in {"get_backend", "lower"}
