"""Compares two certificates: what got worse comes first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cuda_morph.errors import SettingError
from cuda_morph_conformance.vocabulary import Level, Outcome

if TYPE_CHECKING:
    from cuda_morph_conformance.certificate import Certificate

_RANK = {
    Outcome.PASSED: 0,
    Outcome.UNDERDECLARED: 0,
    Outcome.WAIVED: 1,
    Outcome.UNSUPPORTED: 2,
    Outcome.MISSING: 3,
    Outcome.FAILED: 3,
}
"""How bad an outcome is; a higher number than before is a regression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The differences of two certificates, as sentences."""

    regressions: tuple[str, ...]
    improvements: tuple[str, ...]
    other: tuple[str, ...]


def compare(old: Certificate, new: Certificate) -> Changes:
    """Find the differences of two certificates.

    Args:
        old: The earlier one.
        new: The later one.

    Returns:
        What got worse, what got better, and what is only different.

    Raises:
        SettingError: One of them is no certificate, or they cannot be compared.
    """
    try:
        return _compare(old, new)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SettingError(
            f"One of the two is no certificate: {error!r}.", hint="Ask verify what is wrong."
        ) from error


def render_changes(changes: Changes) -> str:
    """Returns the differences as text, regressions first.

    Args:
        changes: What `compare` found.
    """
    parts = (
        ("regressions", changes.regressions),
        ("improvements", changes.improvements),
        ("other differences", changes.other),
    )
    lines = [
        line for title, rows in parts if rows for line in (f"{title}:", *(f"  {r}" for r in rows))
    ]
    return "\n".join(lines) or "no difference"


def _compare(old: Certificate, new: Certificate) -> Changes:
    worse: list[str] = []
    better: list[str] = []
    other: list[str] = []
    for title, rank in (("level", _level_rank), ("evidence", None)):
        before, after = old[title], new[title]
        if before != after:
            line = f"{title}: {before or 'none'} -> {after or 'none'}"
            (other if rank is None else better if rank(after) > rank(before) else worse).append(
                line
            )
    other += [
        f"{title}: {old['plugin'][title]} -> {new['plugin'][title]}"
        for title in ("plugin", "version")
        if old["plugin"][title] != new["plugin"][title]
    ]
    if old["checklist"]["sha256"] != new["checklist"]["sha256"]:
        versions = f"{old['checklist']['version']} -> {new['checklist']['version']}"
        other.append(f"checklist: {versions}, with other checks")
    before, after = _rows(old), _rows(new)
    for key in sorted(before.keys() | after.keys()):
        _compare_row(key, before.get(key), after.get(key), (worse, better, other))
    return Changes(regressions=tuple(worse), improvements=tuple(better), other=tuple(other))


def _compare_row(
    key: str,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
    into: tuple[list[str], list[str], list[str]],
) -> None:
    worse, better, other = into
    if before is None or after is None:
        row = before or after or {}
        text = "is new" if before is None else "is gone"
        line = f"{key} {text}: {row['outcome']}"
        bad = after is not None and _RANK[Outcome(row["outcome"])] == _RANK[Outcome.FAILED]
        lost = after is None and _RANK[Outcome(row["outcome"])] == 0
        (worse if bad or lost else other).append(line)
    elif before["outcome"] != after["outcome"]:
        change = _RANK[Outcome(after["outcome"])] - _RANK[Outcome(before["outcome"])]
        why = f" ({after['message'][:200]})" if change > 0 and after["message"] else ""
        line = f"{key}: {before['outcome']} -> {after['outcome']}{why}"
        (worse if change > 0 else better if change < 0 else other).append(line)


def _rows(certificate: Certificate) -> dict[str, dict[str, Any]]:
    return {
        f"{row['id']}[{row['view']}]" if row["view"] else row["id"]: row
        for row in certificate["results"]
    }


def _level_rank(level: str | None) -> int:
    return Level(level).rank if level else -1
