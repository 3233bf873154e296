"""Counts of the CUDA calls that were answered, kept only while asked for."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class UsageCounter:
    """Counts calls by CUDA name; thread-safe."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns `function`, wrapped to be counted under `name`."""

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.add(name)
            return function(*args, **kwargs)

        return counted

    def add(self, name: str, calls: int = 1) -> None:
        """Adds calls to a name."""
        with self._lock:
            self._counts[name] += calls

    def counts(self) -> dict[str, int]:
        """Returns calls by name, most frequent first."""
        with self._lock:
            return dict(self._counts.most_common())
