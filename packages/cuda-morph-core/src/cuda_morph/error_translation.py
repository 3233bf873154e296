"""A vendor's failure as the exception that a program written for CUDA catches."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cuda_morph.error_lookup import ErrorTable, error_table
from cuda_morph.error_semantics import OUT_OF_MEMORY, SEMANTICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cuda_morph.error_lookup import Match

_NO_FAILURE = {"success", "not_ready"}
_VAGUE = {"unknown", "internal"}

_PHRASE = "out of memory"
"""What programs look for in the message when they do not catch the class."""


def translate(error: BaseException, backend: str | None = None) -> BaseException:
    """Gives the exception of PyTorch that stands for a vendor's failure.

    Args:
        error: What the vendor's software raised.
        backend: Plugin whose codes count; ``None``: all that are installed.

    Returns:
        A new exception with the vendor's text, code, meaning and remedy, whose ``__cause__`` is
        `error`; or `error` itself when nothing is known about it, it already is what a program
        would catch, or it is no `RuntimeError`.
    """
    if not isinstance(error, RuntimeError) or _is_final(error):
        return error
    answer = translated(str(error), error_table(backend))
    if answer is None:
        return error
    answer.__cause__ = error
    return answer


def translated(text: str, table: ErrorTable) -> RuntimeError | None:
    """Builds the exception for a message.

    Args:
        text: The message.
        table: The codes and rules that count.

    Returns:
        The exception, without a cause; ``None`` when the message has nothing that is known.
    """
    matches = _relevant(table.search(text))
    semantic = table.semantic_by_rule(text) or _common_semantic(matches)
    if semantic is None and not matches:
        return None
    kind = SEMANTICS.get(semantic or "unknown", SEMANTICS["unknown"])
    if kind.id in _NO_FAILURE:
        return None
    shown = [match for match in matches if match.entry.semantic in {kind.id, "unknown"}] or matches
    parts = [text, *(_explain(match) for match in shown[:3])]
    unsaid = kind.exception == OUT_OF_MEMORY and _PHRASE not in "\n".join(parts).lower()
    if not matches or unsaid:
        parts.append(f"[{kind.id}] {kind.summary}")
    exception: RuntimeError = exception_class(kind.exception)("\n".join(parts))
    return exception


def exception_class(name: str) -> Any:
    """Returns the class that a `Semantic.exception` names; ``RuntimeError`` where torch lacks it.

    Args:
        name: For example ``torch.OutOfMemoryError``.
    """
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module or "builtins"), attribute)
    except (ImportError, AttributeError):
        return RuntimeError
    return found if issubclass(found, RuntimeError) else RuntimeError


def _is_final(error: RuntimeError) -> bool:
    """Tells an exception that already has its class from the plain one that vendors raise."""
    if type(error) is not RuntimeError:
        return True
    return isinstance(error, exception_class(OUT_OF_MEMORY))


def _relevant(matches: Sequence[Match]) -> list[Match]:
    """Drops what says that all is well, names that say nothing, and numbers beside names.

    A vendor's text may name the layer that failed and give the cause as a number; that counts.
    """
    failures = [match for match in matches if match.entry.semantic not in _NO_FAILURE]
    specific = [match for match in failures if match.entry.semantic not in _VAGUE] or failures
    named = [match for match in specific if match.by_name]
    return named or specific


def _common_semantic(matches: Sequence[Match]) -> str | None:
    """The class that all matches share; an ambiguous number must not choose an exception."""
    found = {match.entry.semantic for match in matches} - {"unknown"}
    return found.pop() if len(found) == 1 else ("unknown" if matches else None)


def _explain(match: Match) -> str:
    entry = match.entry
    code = entry.code if entry.code.casefold() == entry.name.casefold() else None
    head = entry.name if code or not entry.code else f"{entry.name} ({entry.code})"
    remedy = f"\n  next step: {entry.remedy}" if entry.remedy else ""
    return f"[{match.plugin}: {head}] {entry.meaning}{remedy}"
