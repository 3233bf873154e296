"""The comparison as a table for people and as JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from cuda_morph_sim.opinfo.cases import EntryResult
    from cuda_morph_sim.opinfo.known_misses import Verdict

REQUIRED_PERCENT = 99.0


def percent(results: Sequence[EntryResult]) -> float:
    """Share of counted entries that agree with the CPU.

    Args:
        results: What was found.

    Returns:
        A percentage; 100 when nothing counted.
    """
    counted = [result for result in results if result.counted]
    passed = sum(result.passed for result in counted)
    return 100.0 * passed / len(counted) if counted else 100.0


def as_dict(
    results: Sequence[EntryResult], known: Mapping[str, str], verdict: Verdict
) -> dict[str, Any]:
    """The whole outcome, ready for JSON.

    Args:
        results: What was found.
        known: The list of known misses.
        verdict: The results held against the list.

    Returns:
        Counts, percentage and every miss with its reason.
    """
    counted = [result for result in results if result.counted]
    return {
        "entries": len(counted),
        "excluded": sorted(result.name for result in results if not result.counted),
        "passed": sum(result.passed for result in counted),
        "cases": sum(result.cases for result in counted),
        "percent": round(percent(results), 3),
        "misses": {
            result.name: {"found": result.misses, "reason": known.get(result.name, "unexpected")}
            for result in counted
            if not result.passed
        },
        "unexpected_passes": list(verdict.unexpected_passes),
    }


def print_report(console: Console, outcome: Mapping[str, Any]) -> None:
    """Print misses and totals.

    Args:
        console: Where to.
        outcome: Result of `as_dict`.
    """
    from rich.table import Table

    if outcome["misses"]:
        table = Table("operator", "found", "reason", title="Differences from the CPU")
        for name, miss in sorted(outcome["misses"].items()):
            table.add_row(name, "\n".join(miss["found"]), miss["reason"])
        console.print(table)
    for name in outcome["unexpected_passes"]:
        console.print(f"{name} is listed as a known miss and passed: take it off the list.")
    console.print(
        f"{outcome['passed']} of {outcome['entries']} operators agree with the CPU "
        f"({outcome['percent']:.2f} %, {outcome['cases']} comparisons; "
        f"{len(outcome['excluded'])} without CPU support left out)."
    )
