"""Synchronised timing with warm-up, and what the samples say."""

from __future__ import annotations

import math
import statistics
import time
from typing import TYPE_CHECKING, Any

from cuda_morph.frozen_record import frozen_record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SAMPLE_SECONDS = 1e-3
_MOST_CALLS = 1000
_WARM_UP_CALLS = 3


@frozen_record
class Spread:
    """Seconds a call, over the samples."""

    samples: int
    least: float
    p25: float
    p50: float
    p75: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Returns the spread of at least one value."""
        return cls(
            samples=len(values),
            least=min(values),
            **{f"p{percent}": percentile(values, percent) for percent in (25, 50, 75, 95, 99)},
        )


def percentile(values: Sequence[float], percent: float) -> float:
    """Returns the smallest value that so many percent of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def quartile_range(values: Sequence[float]) -> float:
    """Returns the distance between the quartiles; 0 for a single value."""
    if len(values) < 2:  # noqa: PLR2004 - quantiles need two
        return 0.0
    low, _, high = statistics.quantiles(values, n=4)
    return high - low


def synchroniser(device: Any) -> Callable[[], object]:
    """Returns what waits for the device's work; nothing has to be waited for on the CPU."""
    import torch

    if device.type == "cpu":
        return lambda: None
    module = torch.get_device_module(device)
    return lambda: module.synchronize(device)


def time_steps(
    step: Callable[[], object], wait: Callable[[], object], *, warm_up: int, steps: int
) -> list[float]:
    """Times single steps, each synchronised.

    Args:
        step: What to time.
        wait: Waits for the device.
        warm_up: Steps before the first that counts.
        steps: Steps that count.

    Returns:
        Seconds of each step.
    """
    for _ in range(warm_up):
        step()
    wait()
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        wait()
        times.append(time.perf_counter() - start)
    return times


def time_calls(
    call: Callable[[], object], wait: Callable[[], object], samples: int
) -> tuple[list[float], int]:
    """Times calls in samples of about a millisecond, so that short ones are measured well.

    Args:
        call: What to time.
        wait: Waits for the device.
        samples: How many.

    Returns:
        Seconds a call of each sample, and calls a sample.
    """
    once = min(time_steps(call, wait, warm_up=_WARM_UP_CALLS, steps=3))
    count = min(_MOST_CALLS, max(1, round(_SAMPLE_SECONDS / max(once, 1e-9))))

    def several() -> None:
        for _ in range(count):
            call()

    times = time_steps(several, wait, warm_up=1, steps=samples)
    return [seconds / count for seconds in times], count
