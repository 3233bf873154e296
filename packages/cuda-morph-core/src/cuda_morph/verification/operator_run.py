"""One operator of the database: its samples, dtypes, forward and gradient on the device."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from cuda_morph.chosen_device import first_line
from cuda_morph.errors import RefusedError
from cuda_morph.frozen_record import frozen_record
from cuda_morph.verification import references
from cuda_morph.verification.comparison import EXACT, TOLERANCES, Error
from cuda_morph.verification.structures import NOT_UNIQUE, UNINITIALISED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PASS, FAIL, UNSUPPORTED = "pass", "fail", "unsupported"
PARTLY = "partly"
"""What is supported passes, and some of the operator is not supported."""
SKIPPED = "skipped"
"""The CPU has no reference for any case."""

FORWARD, GRADIENT = "forward", "gradient"

_REFUSALS = re.compile(
    r"not implemented|(is|are) not (yet )?support|unsupported|not supported|does ?n.t support"
    r"|does not support|Could not run '|no kernel|is not available for",
    re.IGNORECASE,
)
"""How PyTorch and its backends say that something is not there."""


@frozen_record
class Case:
    """One comparison."""

    dtype: str
    direction: str
    number: int
    status: str
    reference: str
    error: Error = Error()
    detail: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Returns the case in JSON-ready form."""
        return {
            "dtype": self.dtype,
            "direction": self.direction,
            "sample": self.number,
            "status": self.status,
            "reference": self.reference,
            "absolute_error": self.error.absolute,
            "share_of_tolerance": self.error.share,
            "detail": self.detail,
        }


@dataclass(slots=True, kw_only=True)
class OperatorResult:
    """Outcome of one entry of the database."""

    name: str
    cases: list[Case] = field(default_factory=list)
    kernels: dict[str, str] = field(default_factory=dict)
    """Operators that ran on the device, and the origin of their kernels."""

    def count(self, status: str) -> int:
        """Returns how many cases ended so."""
        return sum(case.status == status for case in self.cases)

    @property
    def status(self) -> str:
        """The operator's status; one failure decides."""
        if self.count(FAIL):
            return FAIL
        passed, missing = self.count(PASS), self.count(UNSUPPORTED)
        if passed and missing:
            return PARTLY
        return PASS if passed else UNSUPPORTED if missing else SKIPPED

    @property
    def kernel(self) -> str:
        """``native``, ``fallback`` or ``unknown``: a fallback anywhere counts."""
        origins = set(self.kernels.values())
        if "fallback" in origins:
            return "fallback"
        return "native" if "own" in origins else "unknown"

    @property
    def worst(self) -> Case | None:
        """The case that used most of its tolerance; a failure before any other."""
        measured = [case for case in self.cases if case.status in (PASS, FAIL)]
        if not measured:
            return None
        return max(measured, key=lambda case: (case.status == FAIL, case.error.share))


def run_operator(
    op: Any, device: Any, dtypes: Sequence[str], *, samples: int, gradient: bool = True
) -> OperatorResult:
    """Compares one operator on a device with its reference.

    Args:
        op: An entry of PyTorch's operator database.
        device: The ``torch.device``.
        dtypes: Names of dtypes; those that the operator does not have on the CPU are left out.
        samples: How many of the entry's samples, per dtype.
        gradient: Also compare gradients.

    Returns:
        Every comparison that could be made.
    """
    import torch

    result = OperatorResult(name=op.formatted_name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in dtypes:
            dtype = getattr(torch, name)
            if dtype in op.supported_dtypes("cpu"):
                _compare(result, op, device, dtype, FORWARD, samples)
            floating = dtype.is_floating_point or dtype.is_complex
            if not (gradient and floating and op.supports_autograd):
                continue
            if dtype in op.supported_backward_dtypes("cpu"):
                _compare(result, op, device, dtype, GRADIENT, samples)
    return result


def _compare(
    result: OperatorResult, op: Any, device: Any, dtype: Any, direction: str, samples: int
) -> None:
    function = references.forward if direction == FORWARD else references.gradients
    name = str(dtype).removeprefix("torch.")
    for number, sample in enumerate(_samples(op, dtype, samples, direction == GRADIENT)):

        def compute(place: Any, exchanged: dict[Any, Any], seed: int, sample: Any = sample) -> Any:
            return function(op, sample, place, exchanged, seed)

        reference = references.refer(
            compute,
            TOLERANCES.get(name, EXACT),
            contents=op.name not in UNINITIALISED | NOT_UNIQUE,
            wide=dtype.is_floating_point or dtype.is_complex,
        )
        if reference is None:
            continue
        case = _case(compute, reference, device, name, direction, number)
        result.cases.append(case)
        if case.status == PASS and number == 0:
            _watch(result, compute, device)


def _samples(op: Any, dtype: Any, count: int, requires_grad: bool) -> list[Any]:
    import torch

    torch.manual_seed(references.SEED)
    try:
        return list(islice(op.sample_inputs("cpu", dtype, requires_grad=requires_grad), count))
    except Exception:  # noqa: BLE001 - the database has no sample of this dtype
        return []


def _case(
    compute: Callable[[Any, dict[Any, Any], int], Any],
    reference: references.Reference,
    device: Any,
    dtype: str,
    direction: str,
    number: int,
) -> Case:
    def case(status: str, error: Error | None = None, detail: str = "") -> Case:
        return Case(
            dtype=dtype,
            direction=direction,
            number=number,
            status=status,
            reference=reference.kind,
            error=error or Error(),
            detail=detail,
        )

    try:
        actual = compute(device, {}, references.SEED)
        error = reference.judge(actual, TOLERANCES.get(dtype, EXACT), device.type)
    except AssertionError as difference:
        return case(FAIL, detail=first_line(difference))
    except Exception as raised:  # noqa: BLE001 - every kind of failure is a finding
        status = UNSUPPORTED if is_refusal(raised) else FAIL
        return case(status, detail=f"{type(raised).__name__}: {first_line(raised)}")
    if error.share > 1:
        return case(FAIL, error, f"error {error.absolute:.3g}, {error.share:.3g} x the tolerance")
    return case(PASS, error)


def is_refusal(error: BaseException) -> bool:
    """Tells whether an error says that the device does not have something."""
    if isinstance(error, (NotImplementedError, RefusedError)):
        return True
    return isinstance(error, (RuntimeError, TypeError)) and bool(_REFUSALS.search(str(error)))


def _watch(
    result: OperatorResult, compute: Callable[[Any, dict[Any, Any], int], Any], device: Any
) -> None:
    """Runs a case again to see whose kernels it uses; the compared run is never a watched one."""
    from cuda_morph.trace.kernel_watch import watched_kernels

    try:
        with watched_kernels(device) as watch:
            compute(device, {}, references.SEED)
    except Exception:  # noqa: BLE001 - some operators refuse to be watched; nothing is known then
        return
    result.kernels.update(watch.origins)
