"""Porting the text of one Python file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import libcst as cst
import libcst.matchers as m
from libcst.metadata import CodeRange, MetadataWrapper, ParentNodeProvider, PositionProvider

from cuda_morph.frozen_record import frozen_record
from cuda_morph.port import expressions
from cuda_morph.port.amp_imports import ported_amp_imports
from cuda_morph.port.cuda_imports import MovedImports
from cuda_morph.port.module_names import (
    can_import_torch,
    head_end,
    insert_definitions,
    torch_name,
    uses_name,
)
from cuda_morph.port.rewrites import CALL_REWRITES, REWRITES, amp_decorator
from cuda_morph.port.scripted import is_scripted, scripted_names
from cuda_morph.scan.device_positions import BACKEND_NAME
from cuda_morph.scan.file_scan import scan_source

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from cuda_morph.port.rewrites import Rewrite, RewriteFunction
    from cuda_morph.scan.finding import Finding

_Key = tuple[int, int, int, int]


@frozen_record
class PortedSource:
    """One file's text before and after."""

    before: str
    after: str
    rewritten: tuple[Finding, ...] = ()
    left: tuple[Finding, ...] = ()
    """Findings that nothing was done about."""
    unsafe_left: int = 0
    """How many of those an unsafe rewrite would have handled."""


def port_source(
    text: str,
    *,
    unsafe: bool = False,
    own_methods: Collection[str] = (),
    keep_names: bool = False,
) -> PortedSource:
    """Rewrites what can be rewritten in a Python source.

    Args:
        text: The source.
        unsafe: Also make the changes whose meaning may differ on an accelerator.
        own_methods: Methods called ``cuda`` or ``is_cuda`` that the project defines itself; calls
            of them are then left unless `unsafe`.
        keep_names: Leave the names of torch.cuda, for which tests put something else.

    Returns:
        The new text, and what was done and not done. Ported text ported again does not change.

    Raises:
        SyntaxError: The text does not parse.
    """
    findings = scan_source(text)
    unchanged = PortedSource(before=text, after=text, left=tuple(findings))
    if not findings:
        return unchanged
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        raise SyntaxError(f"line {error.raw_line}: {error.message}") from error
    torch = torch_name(module)
    stranger = torch is None and _works_on_tensors(findings) and can_import_torch(module)
    if stranger:
        torch = "torch"
    taken = any(uses_name(module, name) and own not in text for name, own in _OWN_NAMES.items())
    if torch is None or taken:
        return unchanged
    imports = MovedImports(module, torch, 0 if keep_names else head_end(module))
    settled = imports.handled(findings, text) if imports.names else set()
    porter = _Porter(findings, torch, unsafe=unsafe, own_methods=frozenset(own_methods))
    porter.stranger = stranger
    porter.kept_rules = frozenset({"CM201"} if keep_names else ())
    changed = MetadataWrapper(module, unsafe_skip_copy=True).visit(porter)
    changed, moved = ported_amp_imports(changed, findings, porter.done)
    done = porter.done | moved | settled
    if not done:
        return _result(text, text, findings, done, porter.unsafe)
    changed = insert_definitions(
        imports.without(changed), torch, porter.names | imports.used, imports.statements()
    )
    return _result(text, changed.code, findings, done, porter.unsafe)


def _works_on_tensors(findings: list[Finding]) -> bool:
    """Tells from ``.cuda()`` and ``.is_cuda`` that a module without torch has its tensors."""
    return any(found.rule in {"CM102", "CM103"} for found in findings)


_OWN_NAMES = {
    expressions.DEVICE_TYPE: f"{expressions.DEVICE_TYPE} = getattr(",
    expressions.DEVICE_MODULE: f"{expressions.DEVICE_MODULE} = ",
}
"""The names that porting adds, and how a file begins to define them that was ported before."""


def _result(
    before: str, after: str, findings: list[Finding], done: set[int], unsafe: int
) -> PortedSource:
    numbered = list(enumerate(findings))
    return PortedSource(
        before=before,
        after=after,
        rewritten=tuple(found for number, found in numbered if number in done),
        left=tuple(found for number, found in numbered if number not in done),
        unsafe_left=unsafe,
    )


class _Porter(cst.CSTTransformer):
    """Rewrites the expressions that findings point at."""

    METADATA_DEPENDENCIES = (PositionProvider, ParentNodeProvider)

    def __init__(
        self, findings: list[Finding], torch: str, *, unsafe: bool, own_methods: frozenset[str]
    ) -> None:
        super().__init__()
        self._torch, self._unsafe, self._own = torch, unsafe, own_methods
        self._at: dict[_Key, list[tuple[int, Finding]]] = {}
        for number, found in enumerate(findings):
            place = found.place
            key = (place.line, place.column, place.end_line, place.end_column)
            self._at.setdefault(key, []).append((number, found))
        self._depth = self._in_text = 0
        self._first_line = 0
        self._scripted: frozenset[str] = frozenset()
        self.done: set[int] = set()
        self.names: set[str] = set()
        self.unsafe = 0
        self.kept_rules: frozenset[str] = frozenset()
        self.stranger = False
        """The module does not import torch yet: nothing is known for sure."""

    def visit_Module(self, node: cst.Module) -> None:  # noqa: N802 - libcst's naming
        """Notes where the definitions end: what runs before them cannot use them."""
        self._scripted = scripted_names(node)
        self._first_line = sys.maxsize
        for statement in node.body[head_end(node) :][:1]:
            parts = [*getattr(statement, "decorators", ()), statement]
            where = self.get_metadata(PositionProvider, parts[0])
            if isinstance(where, CodeRange):
                self._first_line = where.start.line

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:  # noqa: N802 - libcst's naming
        """TorchScript knows no global variables: functions that it compiles are left alone."""
        self._depth += is_scripted(node, self._scripted)

    def visit_FormattedStringExpression(  # noqa: N802 - libcst's naming
        self, _: cst.FormattedStringExpression
    ) -> None:
        """Quotes inside an f-string clash with its own before Python 3.12: none are added."""
        self._in_text += 1

    def on_leave(self, original_node: cst.CSTNode, updated_node: Any) -> Any:
        """Rewrites an expression on the way out, when its parts are done."""
        updated = super().on_leave(original_node, updated_node)
        if isinstance(original_node, cst.FormattedStringExpression):
            self._in_text -= 1
            return updated
        if isinstance(original_node, cst.FunctionDef):
            self._depth -= is_scripted(original_node, self._scripted)
            return updated
        if isinstance(original_node, cst.Decorator) and isinstance(updated, cst.Decorator):
            return self._decorator(original_node, updated)
        if not isinstance(updated, cst.BaseExpression) or self._depth:
            return updated
        if isinstance(original_node, cst.Call):
            updated = self._apply(original_node.func, updated, CALL_REWRITES)
        return self._apply(original_node, updated, REWRITES)

    def _found(self, node: cst.CSTNode) -> list[tuple[int, Finding]]:
        where = self.get_metadata(PositionProvider, node, None)
        if not isinstance(where, CodeRange):
            return []
        start, end = where.start, where.end
        if start.line < self._first_line:
            return []
        return self._at.get((start.line, start.column + 1, end.line, end.column + 1), [])

    def _apply(
        self, at: cst.CSTNode, node: cst.BaseExpression, table: Mapping[str, RewriteFunction]
    ) -> cst.BaseExpression:
        for number, found in self._found(at):
            rewrite = table.get(found.rule) if number not in self.done else None
            if (self._is_own(found) and _is_of_self(at)) or self._is_kept_name(at, found):
                continue
            answer = rewrite(node, found, self._torch) if rewrite else None
            if answer is None or (self._in_text and _has_quotes(answer.node)):
                continue
            if self._accept(number, found, answer):
                return expressions.keep_parentheses(node, _without_parentheses(answer.node, node))
        return node

    def _accept(self, number: int, found: Finding, answer: Rewrite) -> bool:
        own = self._is_own(found)
        if (own or self.stranger or not answer.safe) and not self._unsafe:
            self.unsafe += 1
            return False
        self.done.add(number)
        self.names |= answer.names
        return True

    def _is_kept_name(self, node: cst.CSTNode, found: Finding) -> bool:
        """``NCCL = Backend.NCCL``: what is done with the name is not known, left alone."""
        if found.rule in self.kept_rules:
            return True
        if found.rule != "CM301" or not isinstance(node, cst.Attribute):
            return False
        parent = self.get_metadata(ParentNodeProvider, node, None)
        if isinstance(parent, cst.Assign):
            target = cst.Module([]).code_for_node(parent.targets[0].target)
            return not BACKEND_NAME.fullmatch(target.rpartition(".")[2])
        return not isinstance(parent, (cst.Arg, cst.Comparison, cst.ComparisonTarget))

    def _is_own(self, found: Finding) -> bool:
        return {"CM102": "cuda", "CM103": "is_cuda"}.get(found.rule) in self._own

    def _decorator(self, original: cst.Decorator, updated: cst.Decorator) -> cst.Decorator:
        for number, found in self._found(original.decorator):
            if found.rule == "CM205" and number not in self.done:
                answer = amp_decorator(updated.decorator, found, self._torch)
                if answer is not None and self._accept(number, found, answer):
                    return updated.with_changes(decorator=answer.node)
        return updated


def _has_quotes(node: cst.BaseExpression) -> bool:
    return bool(set(cst.Module([]).code_for_node(node)) & set("\"'\\"))


def _is_of_self(node: cst.CSTNode) -> bool:
    """Tells ``self.cuda``: where the project defines that name, it is not torch's."""
    return isinstance(node, cst.Attribute) and m.matches(node.value, m.Name("self"))


def _without_parentheses(new: cst.BaseExpression, old: cst.BaseExpression) -> cst.BaseExpression:
    """Takes off the parentheses that a changed copy of the old expression still has."""
    if not new.lpar or new.lpar != old.lpar:
        return new
    bare: cst.BaseExpression = new.with_changes(lpar=[], rpar=[])
    return bare
