"""What a run says on standard error: one line at activation, a table at the end."""

from __future__ import annotations

import os
import sys
from typing import IO, TYPE_CHECKING, Literal

from cuda_morph.launcher import trace_table

if TYPE_CHECKING:
    from cuda_morph.launcher.outcome import Outcome
    from cuda_morph.manifest import Activation

_ROWS_SHOWN = 20


def is_terminal(stream: IO[str] | None) -> bool:
    """Returns whether a person is looking at the stream."""
    try:
        return stream is not None and stream.isatty()
    except (AttributeError, ValueError):
        return False


def say(text: str) -> None:
    """Writes to standard error; a program may have closed it, which is no error of the run."""
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        return


def simulation_banner(activation: Activation) -> str:
    """Returns the line that keeps a simulated vendor's device from being taken for a real one."""
    name = activation.backend.display_name
    return (
        f"cuda-morph: SIMULATED {name} ({activation.requested}): no {name} hardware or software "
        "is used; nothing here is a result of it"
    )


def color_system() -> Literal["auto"] | None:
    """Returns rich's setting for colours and styles; ``NO_COLOR`` switches both off."""
    return None if os.environ.get("NO_COLOR") else "auto"


def facts(outcome: Outcome) -> list[tuple[str, str]]:
    """Returns the labelled lines above the table of calls."""
    activation = outcome.activation
    lines = [("exit code", str(outcome.exit_code)), ("wall time", f"{outcome.seconds:.2f} s")]
    if activation is None:
        failed = "activation failed" if outcome.error else "torch was never imported"
        return [*lines, ("redirected", f"nothing: {failed}")]
    backend = activation.backend
    limits = [("limit", text) for text in activation.limits]
    return [
        *lines,
        ("backend", f"{activation.requested} ({backend.display_name})"),
        ("simulated", "yes: no hardware was used" if backend.simulated else "no"),
        ("view", activation.view),
        ("tier", activation.tier),
        ("device", f"cuda -> {backend.device_type}, {activation.device_count} visible"),
        *limits,
    ]


def show(outcome: Outcome) -> None:
    """Writes the closing table: with rich on a terminal, as plain text elsewhere."""
    calls = list(outcome.activation.usage()) if outcome.activation else []
    try:
        if is_terminal(sys.stderr) and _show_rich(outcome, calls):
            return
        say("\n".join(_plain(outcome, calls)))
        if outcome.trace is not None:
            say("\n".join(trace_table.plain(outcome.trace)))
    except Exception as error:  # noqa: BLE001 - the program has ended; its exit code must stand
        say(f"cuda-morph: the closing table cannot be shown: {error}")


def _plain(outcome: Outcome, calls: list[tuple[str, str, int]]) -> list[str]:
    lines = ["cuda-morph: run finished"]
    lines += [f"  {label:<11} {text}" for label, text in facts(outcome)]
    if outcome.activation is not None:
        lines.append(f"  {'calls':<11} {_total(calls)}")
    width = max((len(name) for name, _, _ in calls[:_ROWS_SHOWN]), default=0)
    lines += [
        f"    {name:<{width}}  {treatment:<8}  {count:>8}"
        for name, treatment, count in calls[:_ROWS_SHOWN]
    ]
    return lines


def _total(calls: list[tuple[str, str, int]]) -> str:
    if not calls:
        return "none was noticed"
    shown = f", the first {_ROWS_SHOWN} below" if len(calls) > _ROWS_SHOWN else ""
    return f"{sum(call[2] for call in calls)} calls of {len(calls)} CUDA names{shown}"


def _show_rich(outcome: Outcome, calls: list[tuple[str, str, int]]) -> bool:
    """Returns False where rich is not installed."""
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    console = Console(stderr=True, color_system=color_system())
    console.print(Text("cuda-morph: run finished", style="bold"))
    grid = Table.grid(padding=(0, 2))
    for label, text in facts(outcome):
        grid.add_row(Text(f"  {label}", style="dim"), Text(text))
    if outcome.activation is not None:
        grid.add_row(Text("  calls", style="dim"), Text(_total(calls)))
    console.print(grid)
    if calls:
        table = Table("CUDA name", "treatment")
        table.add_column("calls", justify="right")
        for name, treatment, count in calls[:_ROWS_SHOWN]:
            table.add_row(Text(name), Text(treatment), str(count))
        console.print(table)
    if outcome.trace is not None:
        trace_table.show_rich(outcome.trace, console)
    return True
