"""``from torch.cuda.amp import autocast`` becomes an import from torch.amp, where all uses do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from cuda_morph.scan.finding import Finding

_PORTABLE = {"autocast", "GradScaler", "custom_fwd", "custom_bwd"}


def ported_amp_imports(
    module: cst.Module, findings: list[Finding], done: set[int]
) -> tuple[cst.Module, set[int]]:
    """Changes the imports of torch.cuda.amp when nothing needs the old names any more.

    Args:
        module: The module, its calls ported already.
        findings: All findings of the file.
        done: Numbers of those that were rewritten.

    Returns:
        The module, and the numbers of the findings that this takes care of.
    """
    amp = {number for number, found in enumerate(findings) if found.rule == "CM205"}
    mover = _Mover()
    changed = module.visit(mover)
    imports = {
        number
        for number in amp
        if findings[number].excerpt.startswith("from torch.cuda.amp import")
        or _is_imported_name(findings[number])
    }
    if not mover.names or mover.blocked or not (amp - imports) <= done or not imports:
        return module, set()
    return changed, imports


def _is_imported_name(found: Finding) -> bool:
    """A name on a line of its own within a parenthesised import."""
    name = found.symbol.rpartition(".")[2]
    return found.excerpt.partition("#")[0].strip().rstrip(",") == name


class _Mover(cst.CSTTransformer):
    """Moves the imports, and notes which names they bring."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.blocked = False

    def leave_ImportFrom(  # noqa: N802 - libcst's naming
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.ImportFrom:
        """Changes one import."""
        if original_node.relative or not _is_amp(original_node.module):
            return updated_node
        if isinstance(original_node.names, cst.ImportStar):
            self.blocked = True
            return updated_node
        names = {alias.evaluated_name for alias in original_node.names}
        self.names |= names
        self.blocked = self.blocked or not names <= _PORTABLE
        module = cst.parse_expression("torch.amp")
        return updated_node.with_changes(module=module)


def _is_amp(node: cst.BaseExpression | None) -> bool:
    return node is not None and cst.Module([]).code_for_node(node) == "torch.cuda.amp"
