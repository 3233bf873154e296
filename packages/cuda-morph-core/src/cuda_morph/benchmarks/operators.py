"""Latency of common operators by shape and dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda_morph.benchmarks.report import BenchReport, BenchRow
from cuda_morph.benchmarks.timing import Spread, synchroniser, time_calls
from cuda_morph.chosen_device import first_line
from cuda_morph.errors import SettingError
from cuda_morph.frozen_record import frozen_record
from cuda_morph.verification.operator_run import is_refusal

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Sequence

    from cuda_morph.chosen_device import ChosenDevice

Shapes = tuple[tuple[int, ...], ...]

DTYPES = ("float32", "float16", "bfloat16")

_SEED = 20240229
_MICRO = 1e6


@frozen_record
class OperatorCase:
    """An operator with the shapes of its inputs, small ones first."""

    name: str
    shapes: tuple[Shapes, ...]


def _same(count: int, *shapes: tuple[int, ...]) -> tuple[Shapes, ...]:
    return tuple((shape,) * count for shape in shapes)


CASES = (
    OperatorCase(name="add", shapes=_same(2, (1024,), (1024, 1024))),
    OperatorCase(name="mul", shapes=_same(2, (1024,), (1024, 1024))),
    OperatorCase(name="gelu", shapes=_same(1, (1024,), (1024, 1024))),
    OperatorCase(name="sum", shapes=_same(1, (1024,), (1024, 1024))),
    OperatorCase(name="softmax", shapes=_same(1, (64, 64), (1024, 1024))),
    OperatorCase(name="layer_norm", shapes=_same(1, (64, 64), (1024, 1024))),
    OperatorCase(name="mm", shapes=_same(2, (64, 64), (512, 512))),
    OperatorCase(name="bmm", shapes=_same(2, (8, 32, 32), (16, 128, 128))),
    OperatorCase(
        name="conv2d",
        shapes=(((1, 8, 16, 16), (8, 8, 3, 3)), ((8, 32, 32, 32), (32, 32, 3, 3))),
    ),
    OperatorCase(name="attention", shapes=_same(3, (1, 2, 16, 32), (2, 8, 128, 64))),
)


def _functions() -> dict[str, Callable[..., Any]]:
    import torch
    from torch.nn import functional

    return {
        "add": torch.add,
        "mul": torch.mul,
        "gelu": functional.gelu,
        "sum": torch.sum,
        "softmax": lambda x: torch.softmax(x, -1),
        "layer_norm": lambda x: functional.layer_norm(x, x.shape[-1:]),
        "mm": torch.mm,
        "bmm": torch.bmm,
        "conv2d": lambda x, weight: functional.conv2d(x, weight, padding=1),
        "attention": functional.scaled_dot_product_attention,
    }


def choose_cases(pattern: re.Pattern[str] | None) -> tuple[OperatorCase, ...]:
    """Returns the operators whose name matches.

    Raises:
        SettingError: None does.
    """
    chosen = tuple(case for case in CASES if pattern is None or pattern.search(case.name))
    if not chosen:
        raise SettingError(
            f"No operator of the benchmark matches {pattern.pattern if pattern else ''!r}.",
            hint=f"There are {', '.join(case.name for case in CASES)}.",
        )
    return chosen


def measure_operators(
    device: ChosenDevice,
    cases: Sequence[OperatorCase],
    dtypes: Sequence[str],
    *,
    samples: int,
    quick: bool,
    progress: Callable[[int, int], None],
) -> BenchReport:
    """Measures operators.

    Args:
        device: Where.
        cases: Which.
        dtypes: Names of dtypes.
        samples: Samples of each.
        quick: Only the smallest shapes.
        progress: Told what is done and all there is.

    Returns:
        A row for each operator, shape and dtype; what the device refuses has no times.
    """
    runs = [
        (case.name, shapes, dtype)
        for case in cases
        for shapes in (case.shapes[:1] if quick else case.shapes)
        for dtype in dtypes
    ]
    rows = []
    for number, run in enumerate(runs):
        progress(number, len(runs))
        rows.append(_measure(device, *run, samples=samples))
    note = (
        "Each sample is one or more calls of about a millisecond together, synchronised at both "
        "ends, after a warm-up; us are microseconds a call, wall time."
    )
    return BenchReport(
        kind="ops",
        subject="latency of operators",
        device=device,
        rows=tuple(rows),
        settings={"samples": samples, "dtypes": list(dtypes)},
        notes=(note,),
        bar_title="median latency, us",
    )


def _measure(
    device: ChosenDevice, name: str, shapes: Shapes, dtype: str, *, samples: int
) -> BenchRow:
    import torch

    label = " ".join("x".join(str(size) for size in shape) for shape in shapes)
    head = {"operator": name, "shape": label, "dtype": dtype}
    title = f"{name} {label} {dtype}"
    function = _functions()[name]
    torch.manual_seed(_SEED)
    try:
        values = [_values(shape, dtype).to(device.device) for shape in shapes]
        times, calls = time_calls(lambda: function(*values), synchroniser(device.device), samples)
    except Exception as error:  # noqa: BLE001 - whatever an operator raises goes into its row
        status = "unsupported" if is_refusal(error) else "failed"
        return BenchRow(
            name=title,
            fields={**head, **_figures(None, None)},
            status=status,
            reason=first_line(error),
        )
    spread = Spread.of(times)
    median, low, high = (value * _MICRO for value in (spread.p50, spread.p25, spread.p75))
    return BenchRow(name=title, fields={**head, **_figures(spread, calls)}, bar=(median, low, high))


def _values(shape: tuple[int, ...], dtype: str) -> Any:
    import torch

    kind = getattr(torch, dtype)
    if kind.is_floating_point or kind.is_complex:
        return torch.randn(shape).to(kind)
    return torch.randint(0, 2, shape).to(kind)


def _figures(spread: Spread | None, calls: int | None) -> dict[str, Any]:
    names = ("p50", "p25", "p75", "p95", "least")
    found = {
        f"{name}_us": None if spread is None else getattr(spread, name) * _MICRO for name in names
    }
    return {**found, "samples": None if spread is None else spread.samples, "calls": calls}
