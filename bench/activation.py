"""Family ``activation``: what a start costs, in fresh processes."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import fresh
from rows import NO_BUDGET, Budget, Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rows import Effort

LIMITS_MS = {"import_ms": None, "first_ms": 10.0, "warm_ms": 3.0, "off_ms": 0.1}
LIMITS_MS_T1 = {**LIMITS_MS, "first_ms": 12.0}
"""T1 imports more and does with ctypes what T0 has compiled: it looks for a table in memory."""
NAMES = {
    "import_ms": "from cuda_morph import activate",
    "first_ms": "first activate()",
    "warm_ms": "activate() again",
    "off_ms": "deactivate()",
}
MODULES = 50
COMPILERS = ("torch._dynamo", "torch._inductor")


def duration(
    family: str,
    name: str,
    where: str,
    times: Sequence[tuple[float, float]],
    limit: float | None,
) -> Row:
    """Returns the row of a time that may be no more than its limit.

    Args:
        family: Family of the row.
        name: What was timed.
        where: Tier, view and backend, or the kind of process.
        times: CPU time and wall time of each process, in milliseconds. The smallest CPU time
            counts: what the start costs, whoever else uses the machine.
        limit: The budget, ``None`` to show the number only.
    """
    cpu, wall = ([time[k] for time in times] for k in (0, 1))
    quarters = statistics.quantiles(cpu, n=4)
    return Row(
        family=family,
        name=name,
        where=where,
        measured=min(cpu),
        unit="ms",
        budget=NO_BUDGET if limit is None else Budget(kind="most", limit=limit),
        spread=quarters[2] - quarters[0],
        samples=len(times),
        note=f"median {statistics.median(cpu):.3g} ms, smallest wall time {min(wall):.3g} ms",
    )


def count(family: str, name: str, where: str, found: float, limit: float, note: str = "") -> Row:
    """Returns the row of a number that may be no more than its limit."""
    budget = Budget(kind="most", limit=limit)
    return Row(
        family=family,
        name=name,
        where=where,
        measured=float(found),
        unit="",
        budget=budget,
        samples=1,
        note=note,
    )


def measure(effort: Effort) -> list[Row]:
    """Measures imports, activations, and what is there when nothing is asked for."""
    rows: list[Row] = []
    for tier in effort.tiers:
        rows += _starts(tier, effort.processes)
    fresh.ask("light_child.py", "import")  # caches bytecode
    light = [fresh.ask("light_child.py", "import")["ms"] for _ in range(effort.processes)]
    rows.append(duration("activation", "import cuda_morph", "without torch", light, 30.0))
    unasked = [
        fresh.ask("light_child.py", "autoload", TORCH_DEVICE_BACKEND_AUTOLOAD="0")["ms"]
        for _ in range(effort.processes)
    ]
    name = "entry point, nothing set"
    rows.append(duration("activation", name, "import torch", unasked, 1.0))
    return rows


def _starts(tier: str, processes: int) -> list[Row]:
    arguments = ("activation_child.py", "cpu", tier, "cuda")
    fresh.ask(*arguments)  # caches bytecode
    found: list[dict[str, Any]] = [fresh.ask(*arguments) for _ in range(processes)]
    where = f"{tier} cuda cpu"
    rows = [
        duration("activation", NAMES[key], where, [item[key] for item in found], limit)
        for key, limit in (LIMITS_MS if tier == "T0" else LIMITS_MS_T1).items()
    ]
    modules = found[0]["modules"]
    foreign = [name for name in modules if not name.startswith("cuda_morph")]
    compilers = [name for name in modules if name.startswith(COMPILERS)]
    left = {name for item in found for name in item["left_behind"]}
    note = f"{len(foreign)} of them not our own"
    return [
        *rows,
        count("activation", "modules imported", where, len(modules), MODULES, note),
        count("activation", "modules of Dynamo and Inductor", where, len(compilers), 0),
        count("activation", "namespaces changed after deactivate()", where, len(left), 0),
    ]
