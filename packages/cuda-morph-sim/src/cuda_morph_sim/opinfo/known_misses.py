"""The committed list of operators that are known to differ, and why."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cuda_morph_sim.opinfo.cases import EntryResult

FILE = Path(__file__).with_name("known_misses.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The results held against the list."""

    unexpected_misses: tuple[EntryResult, ...]
    unexpected_passes: tuple[str, ...]

    @property
    def clean(self) -> bool:
        """Whether the results are exactly as the list says."""
        return not self.unexpected_misses and not self.unexpected_passes


def read_known_misses(path: Path = FILE) -> dict[str, str]:
    """Read the list.

    Args:
        path: A JSON file: entry name to reason.

    Returns:
        The reasons by entry name.
    """
    known: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return known


def judge(results: Iterable[EntryResult], known: Mapping[str, str]) -> Verdict:
    """Hold results against the list; entries that were not run or not counted are left out.

    Args:
        results: What was found.
        known: The list.

    Returns:
        Misses that are not listed, and listed entries that passed.
    """
    counted = [result for result in results if result.counted]
    return Verdict(
        unexpected_misses=tuple(
            result for result in counted if not result.passed and result.name not in known
        ),
        unexpected_passes=tuple(
            result.name for result in counted if result.passed and result.name in known
        ),
    )
