"""What the active shim costs: alternating blocks, native and active, of one process.

Each round times every statement once in each state, so both meet the same weather; the order
alternates. A block takes about half a millisecond of CPU time of its own thread, so one that the
scheduler interrupts is not counted as slow. Code is compiled anew for each block: what the
interpreter learned in one state must not help or hinder in the other. Native blocks come after an
activation that was taken back, as so much work just before slows the next block.
"""

from __future__ import annotations

import contextlib
import statistics
import time
import timeit
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cuda_morph.activation import activate, deactivate, is_active
from cuda_morph.benchmarks.report import BenchReport, BenchRow
from cuda_morph.benchmarks.timing import quartile_range
from cuda_morph.chosen_device import ChosenDevice
from cuda_morph.errors import AlreadyActiveError, SettingError
from cuda_morph.manifest import OFF, PASSTHROUGH

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.manifest import Activation

BLOCK_SECONDS = 0.0005
UNROLL = 5

BYSTANDERS = (
    "torch.empty(2)",
    "c + c",
    "c.to(torch.float64)",
    'c.to("cpu")',
    'torch.device("cpu")',
    "c.shape",
    "c.device",
)
"""Calls that have nothing to do with CUDA."""


@dataclass(slots=True, kw_only=True)
class Statement:
    """What is timed in the two states, and seconds a call of every block."""

    family: str
    native: str
    active: str
    calls: int = 0
    natives: list[float] = field(default_factory=list)
    actives: list[float] = field(default_factory=list)

    def row(self) -> BenchRow:
        """Returns what was measured."""
        pairs = zip(self.natives, self.actives, strict=True)
        ratios = [active / native for native, active in pairs]
        ratio, spread = statistics.median(ratios), quartile_range(ratios)
        return BenchRow(
            name=self.active,
            fields={
                "family": self.family,
                "against": self.native,
                "native_ns": statistics.median(self.natives) * 1e9,
                "active_ns": statistics.median(self.actives) * 1e9,
                "ratio": ratio,
                "ratio_iqr": spread,
                "blocks": len(ratios),
            },
            bar=(ratio, ratio - spread / 2, ratio + spread / 2),
        )


def statements(device_type: str, *, redirected: bool) -> list[Statement]:
    """Returns what is timed.

    Args:
        device_type: The backend's device, as its own user writes it.
        redirected: Also CUDA calls, which need the backend's device in both states.
    """
    found = [Statement(family="bystander", native=code, active=code) for code in BYSTANDERS]
    if redirected:
        pairs = (
            (f'torch.device("{device_type}")', 'torch.device("cuda")'),
            (f'torch.empty(2, device="{device_type}")', 'torch.empty(2, device="cuda")'),
            (f'x.to("{device_type}")', 'x.to("cuda")'),
            ("x.to(own)", "x.cuda()"),
        )
        found += [
            Statement(family="redirected", native=native, active=active) for native, active in pairs
        ]
    return found


def measure_overhead(
    backend: str | None, *, rounds: int, progress: Callable[[int, int], None]
) -> BenchReport:
    """Measures the shim.

    Args:
        backend: What `activate` is given.
        rounds: Alternations of native and active blocks.
        progress: Told the rounds done and all rounds.

    Returns:
        A row for each statement.

    Raises:
        MorphError: The backend cannot be used, or changes nothing that could cost.
    """
    with contextlib.suppress(ImportError):  # what is missing is said by `activate`
        import torch  # noqa: F401 - automatic activation happens here, if at all
    if is_active():
        raise AlreadyActiveError(
            "A backend is active already, so there is no native state to compare with.",
            hint="Start the command without CUDA_MORPH_INHERIT and automatic activation.",
        )
    with activate(backend, view="cuda") as activation:
        chosen = _chosen(activation)
        tier, limits = activation.tier, ":" in activation.requested
    timed = statements(chosen.device.type, redirected=not limits)
    namespace = _namespace(chosen.device, redirected=not limits)
    _calibrate(timed, namespace)
    for number in range(rounds):
        progress(number, rounds)
        states = (False, True) if number % 2 else (True, False)
        for active in states:
            _block(timed, namespace, chosen.backend, active=active)
    notes = (
        "Times are CPU time of the measuring thread; the ratio is the median over neighbouring "
        "blocks, ratio_iqr the distance between its quartiles."
    )
    partial = "A simulated adapter exists only while it is active: CUDA calls were left out."
    return BenchReport(
        kind="overhead",
        subject="the active shim against native",
        device=chosen,
        rows=tuple(statement.row() for statement in timed),
        settings={"rounds": rounds, "tier": tier, "view": "cuda"},
        notes=(notes, *((partial,) if limits else ())),
        bar_title="active / native",
    )


def _chosen(activation: Activation) -> ChosenDevice:
    import torch

    if activation.tier in (PASSTHROUGH, OFF):
        raise SettingError(
            f"Nothing is changed here (tier {activation.tier}), so there is nothing to measure.",
            hint="Name another backend with --backend.",
        )
    return ChosenDevice(
        device=torch.device(activation.backend.device_type),
        backend=activation.requested,
        display_name=activation.backend.display_name,
        simulated=activation.backend.simulated,
    )


def _namespace(device: Any, *, redirected: bool) -> dict[str, Any]:
    import torch

    names: dict[str, Any] = {"torch": torch, "c": torch.ones(4)}
    return {**names, "x": torch.ones(2, device=device), "own": device} if redirected else names


def _seconds(code: str, namespace: dict[str, Any], calls: int) -> float:
    # A new timer compiles anew; it also keeps the garbage collector out.
    timer = timeit.Timer("; ".join([code] * UNROLL), globals=namespace, timer=time.thread_time)
    timer.timeit(max(2, calls // 10))
    return timer.timeit(calls) / (calls * UNROLL)


def _calibrate(timed: list[Statement], namespace: dict[str, Any]) -> None:
    for statement in timed:
        seconds = min(_seconds(statement.native, namespace, 20) for _ in range(3))
        statement.calls = max(2, int(BLOCK_SECONDS / (UNROLL * max(seconds, 1e-9))))


def _block(
    timed: list[Statement], namespace: dict[str, Any], backend: str, *, active: bool
) -> None:
    activate(backend, view="cuda")
    try:
        if active:
            for one in timed:
                one.actives.append(_seconds(one.active, namespace, one.calls))
    finally:
        deactivate()
    if not active:
        for one in timed:
            one.natives.append(_seconds(one.native, namespace, one.calls))
