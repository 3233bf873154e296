"""One operator's comparison: which samples, which dtypes, forward and backward."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - running operators needs PyTorch by nature

from cuda_morph.verification.structures import UNINITIALISED, tensors, to_device
from cuda_morph_sim.opinfo.comparison import check_equal

if TYPE_CHECKING:
    from collections.abc import Iterator

DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)
SAMPLES = {torch.float32: 3}
"""Samples per dtype; one where nothing is said."""

_CPU = torch.device("cpu")
_SEED = 20240229


@dataclass(slots=True, kw_only=True)
class EntryResult:
    """Outcome of one entry of the operator database."""

    name: str
    cases: int = 0
    """Comparisons made: those that the CPU itself can do."""
    misses: list[str] = field(default_factory=list)
    """What went wrong, one line per case."""

    @property
    def counted(self) -> bool:
        """Whether the CPU supports any case, so that the entry counts."""
        return self.cases > 0

    @property
    def passed(self) -> bool:
        """Whether every case agreed."""
        return not self.misses


def run_entry(op: Any, device: torch.device) -> EntryResult:
    """Compare one operator on the device with the CPU.

    Args:
        op: An entry of PyTorch's operator database.
        device: The simulated device.

    Returns:
        What agreed and what did not.
    """
    result = EntryResult(name=op.formatted_name)
    contents = op.name not in UNINITIALISED
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in DTYPES:
            if dtype not in op.supported_dtypes("cpu"):
                continue
            for number, sample in enumerate(_samples(op, dtype, requires_grad=False)):
                label = f"forward {_short(dtype)} #{number}"
                _case(result, label, op, sample, device, contents=contents)
        if op.supports_autograd and torch.float32 in op.supported_backward_dtypes("cpu"):
            for number, sample in enumerate(_samples(op, torch.float32, requires_grad=True)):
                if number == 0:
                    _gradient_case(result, op, sample, device)
    return result


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _samples(op: Any, dtype: torch.dtype, *, requires_grad: bool) -> Iterator[Any]:
    torch.manual_seed(_SEED)
    samples = op.sample_inputs("cpu", dtype, requires_grad=requires_grad)
    yield from islice(samples, SAMPLES.get(dtype, 1))


def _call(op: Any, sample: Any, device: torch.device) -> tuple[Any, Any]:
    inputs = to_device((sample.input, *sample.args), device)
    keywords = to_device(sample.kwargs, device)
    torch.manual_seed(_SEED)
    return sample.output_process_fn_grad(op(*inputs, **keywords)), (inputs, keywords)


def _case(
    result: EntryResult,
    label: str,
    op: Any,
    sample: Any,
    device: torch.device,
    *,
    contents: bool,
) -> None:
    try:
        expected, _ = _call(op, sample, _CPU)
    except Exception:  # noqa: BLE001 - whatever the CPU refuses is out of scope
        return
    result.cases += 1
    try:
        actual, _ = _call(op, sample, device)
        check_equal(actual, expected, contents=contents)
    except Exception as error:  # noqa: BLE001 - every kind of failure is a finding
        result.misses.append(f"{label}: {_one_line(error)}")


def _gradients(op: Any, sample: Any, device: torch.device) -> list[torch.Tensor]:
    output, arguments = _call(op, sample, device)
    leaves = [leaf for leaf in tensors(arguments) if leaf.requires_grad]
    outputs = [one for one in tensors(output) if one.requires_grad]
    if not leaves or not outputs:
        return []
    torch.manual_seed(_SEED)
    directions = [torch.randn(one.shape, dtype=one.dtype).to(device) for one in outputs]
    found = torch.autograd.grad(outputs, leaves, directions, allow_unused=True)
    return [gradient for gradient in found if gradient is not None]


def _gradient_case(result: EntryResult, op: Any, sample: Any, device: torch.device) -> None:
    try:
        expected = _gradients(op, sample, _CPU)
    except Exception:  # noqa: BLE001 - whatever the CPU refuses is out of scope
        return
    result.cases += 1
    try:
        check_equal(_gradients(op, sample, device), expected)
    except Exception as error:  # noqa: BLE001 - every kind of failure is a finding
        result.misses.append(f"gradient float32: {_one_line(error)}")


def _one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:200]}"
