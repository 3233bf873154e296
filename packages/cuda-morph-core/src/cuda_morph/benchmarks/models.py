"""Throughput and latency of a model: the user's, or a small transformer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda_morph.benchmarks.report import BenchReport, BenchRow
from cuda_morph.benchmarks.timing import Spread, synchroniser, time_steps
from cuda_morph.model_factory import plain
from cuda_morph.verification.structures import tensors

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.chosen_device import ChosenDevice
    from cuda_morph.model_factory import ModelCall

BUILT_IN = "built-in transformer"

_VOCABULARY, _WIDTH, _LAYERS, _HEADS = 1000, 64, 2, 4
_BATCH, _LENGTH = 4, 32
_MILLI = 1e3
_TOKEN_DIMENSIONS = 2
_ENOUGH_FOR_P99 = 100
_NOT_FINITE = "The model's results hold infinities or nan: it may not do the work that it should."
_FEW = "With fewer than 100 steps p99 is the slowest step."


def built_in_model() -> Any:
    """Returns a small transformer over tokens, with its input."""
    import torch
    from torch import nn

    layer = nn.TransformerEncoderLayer(
        _WIDTH, _HEADS, dim_feedforward=4 * _WIDTH, dropout=0.0, batch_first=True, norm_first=True
    )
    model = nn.Sequential(
        nn.Embedding(_VOCABULARY, _WIDTH),
        nn.TransformerEncoder(layer, _LAYERS, enable_nested_tensor=False),
        nn.Linear(_WIDTH, _VOCABULARY),
    )
    return model, torch.randint(0, _VOCABULARY, (_BATCH, _LENGTH))


def _figures(
    spread: Spread, samples: int | None, tokens: int | None, seconds: float, steps: int
) -> dict[str, float | None]:
    """Returns throughput over all steps and the times of single ones, in milliseconds."""
    return {
        "samples_per_s": None if samples is None else samples * steps / seconds,
        "tokens_per_s": None if tokens is None else tokens * steps / seconds,
        **{
            f"{name}_ms": getattr(spread, name) * _MILLI
            for name in ("p50", "p95", "p99", "least", "p25", "p75")
        },
        "steps": steps,
    }


def measure_model(
    target: str,
    call: ModelCall,
    device: ChosenDevice,
    *,
    train: bool,
    warm_up: int,
    steps: int,
) -> BenchReport:
    """Measures steps of a model.

    Args:
        target: Name of the model, for the report.
        call: The model on the device.
        device: The device.
        train: Steps are forward, backward and an update by SGD; else forward without gradient.
        warm_up: Steps that do not count.
        steps: Steps that count.

    Returns:
        One row; tokens a second only where the first input is a batch of token numbers.

    Raises:
        MorphError: The model failed.
    """
    step = _training_step(call) if train else _inference_step(call)
    times = time_steps(step, synchroniser(device.device), warm_up=warm_up, steps=steps)
    finite = _is_finite(call)
    spread, (samples, tokens) = Spread.of(times), _sizes(call)
    figures = _figures(spread, samples, tokens, sum(times), steps)
    median, low, high = (value * _MILLI for value in (spread.p50, spread.p25, spread.p75))
    notes = (
        "Every step is synchronised; samples are the first dimension of the first input, tokens "
        "its first two where it holds integers."
    )
    return BenchReport(
        kind="model",
        subject=target,
        device=device,
        rows=(
            BenchRow(
                name="training step" if train else "forward",
                fields={"step": "training" if train else "forward", **figures},
                bar=(median, low, high),
            ),
        ),
        settings={"warm_up": warm_up, "steps": steps, "train": train},
        notes=(
            *(() if finite else (_NOT_FINITE,)),
            notes,
            *((_FEW,) if steps < _ENOUGH_FOR_P99 else ()),
        ),
        bar_title="median step, ms",
        seconds=tuple(times),
    )


def _is_finite(call: ModelCall) -> bool:
    """Looks at the results of one more step, after those that were timed."""
    import torch

    with torch.no_grad():
        found = [one.cpu() for one in tensors(plain(call())) if one.is_floating_point()]
    return all(bool(one.double().isfinite().all()) for one in found)


def _inference_step(call: ModelCall) -> Callable[[], object]:
    import torch

    def step() -> None:
        with torch.no_grad():
            call()

    return step


def _training_step(call: ModelCall) -> Callable[[], object]:
    import torch

    model = call.model
    parameters = list(model.parameters()) if isinstance(model, torch.nn.Module) else []
    optimizer = torch.optim.SGD(parameters, lr=1e-4) if parameters else None

    def step() -> None:
        if optimizer is not None:
            optimizer.zero_grad()
        call.backward()
        if optimizer is not None:
            optimizer.step()

    return step


def _sizes(call: ModelCall) -> tuple[int | None, int | None]:
    """Returns samples and tokens of a step, where the inputs tell."""
    first = next(tensors((call.args, call.keywords)), None)
    if first is None or not first.dim():
        return None, None
    is_number = first.is_floating_point() or first.is_complex()
    if is_number or first.dim() < _TOKEN_DIMENSIONS:
        return first.shape[0], None
    return first.shape[0], first.shape[0] * first.shape[1]
