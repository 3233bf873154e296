"""What single nodes of a syntax tree say about CUDA."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Protocol

from cuda_morph.scan import cuda_text, device_positions, device_strings, python_settings
from cuda_morph.scan.bindings import text_of
from cuda_morph.scan.qualified_names import classify

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.scan.bindings import Bindings


class Report(Protocol):
    """Takes a finding: rule, node, symbol, detail."""

    def __call__(self, rule: str, node: ast.AST, symbol: str, detail: str = "") -> None:
        """Reports."""


class Detectors:
    """All detectors, by the type of node that they look at.

    Args:
        bindings: The names in force where the walk is.
        report: Takes the findings.
    """

    def __init__(self, bindings: Bindings, report: Report) -> None:
        self._names = bindings
        self._report = report
        self._strings = device_strings.DeviceStrings(bindings, report)
        self._by_type: dict[type[ast.AST], tuple[Callable[..., None], ...]] = {
            ast.Import: (self._import,),
            ast.ImportFrom: (self._import_from,),
            ast.Attribute: (self._attribute,),
            ast.Name: (self._name,),
            ast.Call: (self._call, self._strings.call, self._settings_call),
            ast.Compare: (self._strings.compare, self._settings_compare),
            ast.Assign: (self._strings.assign, self._settings_assign),
            ast.AnnAssign: (self._strings.annotated_assign,),
            ast.NamedExpr: (self._strings.named_expression,),
            ast.FunctionDef: (self._strings.function,),
            ast.AsyncFunctionDef: (self._strings.function,),
            ast.Lambda: (self._strings.function,),
            ast.For: (self._strings.loop,),
            ast.comprehension: (self._strings.loop,),
            ast.Dict: (self._strings.dictionary, self._settings_dict),
            ast.Subscript: (self._settings_subscript,),
            ast.Match: (self._strings.match,),
        }

    def look(self, node: ast.AST) -> None:
        """Looks at one node; its children are looked at by themselves."""
        for detector in self._by_type.get(type(node), ()):
            detector(node)

    def concerns(self, name: str) -> bool:
        """Tells whether a qualified name has a rule."""
        return classify(name) is not None or cuda_text.library_rule(name) is not None

    # Imports -----------------------------------------------------------------------------------

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._module(alias, alias.name)

    def _import_from(self, node: ast.ImportFrom) -> None:
        if node.level or not node.module:
            return
        library = cuda_text.library_rule(node.module)
        if library:
            self._report(library, node, node.module.partition(".")[0])
            return
        for alias in node.names:
            self._module(alias, f"{node.module}.{alias.name}", node.module)

    def _module(self, node: ast.alias, name: str, module: str = "") -> None:
        library = cuda_text.library_rule(name)
        if library:
            symbol = "numba.cuda" if name.startswith("numba.") else name.partition(".")[0]
            self._report(library, node, symbol)
            return
        found = classify(f"{module}.{node.name}" if module else name)
        if found:
            self._report(found[0], node, found[1])

    # Names -------------------------------------------------------------------------------------

    def _attribute(self, node: ast.Attribute) -> None:
        name = self._names.resolve(node)
        if name is not None:
            found = classify(name)
            if found:
                self._report(found[0], self._longest(node, name, found[1]), found[1])
                return
            library = cuda_text.library_rule(name)
            if library and name.startswith("numba.cuda"):
                self._report(library, node, "numba.cuda")
        elif node.attr == "is_cuda" and isinstance(node.ctx, ast.Load):
            self._report("CM103", node, ".is_cuda")

    def _longest(self, node: ast.Attribute, name: str, symbol: str) -> ast.AST:
        """The part of an attribute chain that spells the symbol; one finding per chain."""
        current: ast.AST = node
        while isinstance(current, ast.Attribute) and len(name) > len(symbol):
            inner = self._names.resolve(current.value)
            if inner is None or len(inner) < len(symbol):
                break
            current, name = current.value, inner
        return current

    def _name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            return
        name = self._names.resolve(node)
        found = classify(name) if name else None
        if found and found[1] != "torch.cuda":
            self._report(found[0], node, found[1])

    # Calls -------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> None:
        name = self._names.resolve(node.func)
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr == "cuda" and name is None:
            self._report("CM102", function, ".cuda()")
        self._by_name(node, name)
        self._replaced(node)
        for keyword in node.keywords:
            self._keyword(node, keyword)

    def _by_name(self, node: ast.Call, name: str | None) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
            if text_of(node.args[1]) is None and self._names.resolve(node.args[0]) == "torch.cuda":
                self._report("CM905", node, "torch.cuda")
            else:
                resolved = classify(self._names.resolve(node) or "")
                if resolved:
                    self._report(resolved[0], node, resolved[1])
        elif name in {"importlib.import_module", "importlib.util.find_spec", "__import__"}:
            module = text_of(node.args[0]) if node.args else None
            rule = cuda_text.library_rule(module) if module else None
            found = classify(module) if module else None
            if rule:
                self._report(rule, node, str(module).partition(".")[0])
            elif found:
                self._report(found[0], node, found[1])
        if name and name.startswith("torch.library."):
            for argument in node.args:
                if text_of(argument) in {"cuda", "CUDA"}:
                    self._report("CM506", argument, name)
        if name and name.startswith("torch.utils.cpp_extension.load"):
            self._sources(node)

    def _replaced(self, node: ast.Call) -> None:
        """``mock.patch("torch.cuda.is_available", ...)``: a name that a test replaces."""
        if device_positions.last_name(node.func) not in {"patch", "setattr", "delattr"}:
            return
        text = text_of(node.args[0]) if node.args else None
        found = classify(text) if text and text.startswith("torch.cuda.") else None
        if found and found[1] == text:
            self._report(found[0], node.args[0], found[1])

    def _sources(self, node: ast.Call) -> None:
        for part in ast.walk(node):
            text = text_of(part)
            if text and text.endswith((".cu", ".cuh")):
                self._report("CM501", node, "torch.utils.cpp_extension.load")

    def _keyword(self, node: ast.Call, keyword: ast.keyword) -> None:
        value = keyword.value
        if keyword.arg == "cuda_sources" and not _is_empty(value):
            self._report("CM505", keyword, "load_inline")
        elif keyword.arg == "with_cuda" and getattr(value, "value", None) is True:
            self._report("CM501", keyword, "with_cuda")
        elif keyword.arg == "use_cuda" and getattr(value, "value", None) is True:
            name = self._names.resolve(node.func) or ""
            if "profile" in name:
                self._report("CM209", keyword, "use_cuda")
        elif keyword.arg == "sort_by" and (text_of(value) or "").startswith(("cuda_", "self_cuda")):
            self._report("CM209", value, text_of(value) or "")

    # Settings ----------------------------------------------------------------------------------

    def _settings_call(self, node: ast.Call) -> None:
        for rule, part, symbol in python_settings.of_call(node, self._names):
            self._report(rule, part, symbol)

    def _settings_compare(self, node: ast.Compare) -> None:
        for rule, part, symbol in python_settings.of_compare(node):
            self._report(rule, part, symbol)

    def _settings_assign(self, node: ast.Assign) -> None:
        for rule, part, symbol in python_settings.of_assign(node):
            self._report(rule, part, symbol)

    def _settings_dict(self, node: ast.Dict) -> None:
        for rule, part, symbol in python_settings.of_dict(node):
            self._report(rule, part, symbol)

    def _settings_subscript(self, node: ast.Subscript) -> None:
        for rule, part, symbol in python_settings.of_subscript(node):
            self._report(rule, part, symbol)


def _is_empty(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return node.value in (None, "")
    return isinstance(node, (ast.List, ast.Tuple)) and not node.elts
