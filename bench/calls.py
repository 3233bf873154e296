"""Families ``bystanders``, ``redirected`` and ``sim``: the price of one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import fresh
from rows import Budget, Row

if TYPE_CHECKING:
    from rows import Effort


def _ask(backend: str, tier: str, rounds: int, *families: str) -> list[Row]:
    """Measures in one process, in the cuda view: it is the one that changes the most."""
    rows = []
    for entry in fresh.ask("calls_child.py", backend, tier, "cuda", str(rounds), *families):
        fields = {name: value for name, value in entry.items() if name not in {"result", "passes"}}
        rows.append(Row(**{**fields, "budget": Budget(**entry["budget"])}))
    return rows


def _each_tier(effort: Effort, *families: str) -> list[Row]:
    backend = "sim" if "sim" in effort.backends else "cpu"
    return [row for tier in effort.tiers for row in _ask(backend, tier, effort.rounds, *families)]


def bystanders(effort: Effort) -> list[Row]:
    """Calls without CUDA must cost what they did."""
    return _each_tier(effort, "bystanders")


def redirected(effort: Effort) -> list[Row]:
    """CUDA calls must cost no more than the backend's own."""
    return _each_tier(effort, "redirected", "answered")


def sim(effort: Effort) -> list[Row]:
    """An operator of the simulated device may cost a little more than the CPU's."""
    if "sim" not in effort.backends:
        return []
    return _ask("sim", effort.tiers[0], effort.rounds, "sim")
