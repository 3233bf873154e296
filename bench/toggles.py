"""Family ``toggles``: activating and deactivating while other threads work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import fresh
from rows import Budget, Row

if TYPE_CHECKING:
    from rows import Effort


def measure(effort: Effort) -> list[Row]:
    """Toggles under four threads: no crash, no wrong answer, no error that is not PyTorch's."""
    backend = "sim" if "sim" in effort.backends else "cpu"
    rows = []
    for tier in effort.tiers:
        # The tier that nearly everybody gets is tried longest.
        toggles = effort.toggles if tier == effort.tiers[0] else effort.toggles // 5
        found = fresh.ask("toggles_child.py", backend, tier, "cuda", str(toggles))
        calls = found["calls"]
        done = f"{calls.get('answered', 0)} calls answered, {calls.get('not active', 0)} refused"
        rows.append(
            Row(
                family="toggles",
                name=f"wrong answers in {toggles} toggles",
                where=f"{tier} cuda {backend}",
                measured=found["problem_count"],
                unit="",
                budget=Budget(kind="most", limit=0),
                samples=toggles,
                note="; ".join([done, *found["problems"]]),
            )
        )
    return rows
