"""Progress of a run: a bar on a terminal, plain lines elsewhere; both on standard error."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import TYPE_CHECKING

from cuda_morph_conformance.vocabulary import Seen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from cuda_morph_conformance.result import Result

_STEPS = 10
"""How many plain lines a run without a terminal writes."""


class PlainLines:
    """Writes a line for each tenth of the work.

    Args:
        total: How many results will come, over all plugins.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.failed = 0
        self._lock = threading.Lock()

    def step(self, plugin: str, result: Result) -> None:
        """Take note of a result.

        Args:
            plugin: Whose it is.
            result: What was seen.
        """
        with self._lock:
            before = self.done * _STEPS // self.total
            self.done += 1
            self.failed += result.seen is Seen.FAILED
            if self.done * _STEPS // self.total > before:
                self.show(plugin, result)

    def show(self, plugin: str, result: Result) -> None:
        """Write a line.

        Args:
            plugin: Whose result came last.
            result: That result.
        """
        failed = f", {self.failed} failed" if self.failed else ""
        line = f"{self.done}/{self.total}{failed} ({plugin} {result.id})"
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


class Bar(PlainLines):
    """Moves a bar of `rich`.

    Args:
        total: How many results will come, over all plugins.
        bar: The bar.
    """

    def __init__(self, total: int, bar: Any) -> None:
        super().__init__(total)
        self.bar = bar
        self.task = bar.add_task("checks", total=total, last="")

    def step(self, plugin: str, result: Result) -> None:
        """Take note of a result.

        Args:
            plugin: Whose it is.
            result: What was seen.
        """
        with self._lock:
            self.failed += result.seen is Seen.FAILED
            failed = f"[red]{self.failed} failed[/red]  " if self.failed else ""
            self.bar.update(self.task, advance=1, last=f"{failed}{plugin} {result.id}")


@contextlib.contextmanager
def follow(total: int) -> Iterator[PlainLines]:
    """Show progress while the block runs.

    Args:
        total: How many results will come.

    Yields:
        What takes the results.
    """
    total = max(total, 1)
    if not sys.stderr.isatty():
        yield PlainLines(total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[last]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield Bar(total, bar)
