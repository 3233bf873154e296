"""One operator of the database: its samples, dtypes, forward and gradient on the device."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from cuda_morph.chosen_device import first_line
from cuda_morph.errors import RefusedError
from cuda_morph.verification import references
from cuda_morph.verification.comparison import EXACT, TOLERANCES, Error
from cuda_morph.verification.outcomes import (
    DEVICE,
    FAIL,
    FORWARD,
    GRADIENT,
    HOST,
    PASS,
    UNSUPPORTED,
    Case,
    OperatorResult,
    Place,
)
from cuda_morph.verification.structures import NOT_UNIQUE, UNINITIALISED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Compute: TypeAlias = Callable[[Any, dict[Any, Any], int], Any]
    """On a device, with dtypes to exchange, from a seed."""
    Told: TypeAlias = Place | Case | dict[str, str]
    """Where a run is, a comparison, or origins of kernels by operator."""

_REFUSALS = re.compile(
    r"not implemented|(is|are) not (yet )?support|unsupported|not supported|does ?n.t support"
    r"|does not support|Could not run '|no kernel|is not available for",
    re.IGNORECASE,
)
"""How PyTorch and its backends say that something is not there."""


def run_operator(
    op: Any,
    device: Any,
    dtypes: Sequence[str],
    *,
    samples: int,
    gradient: bool = True,
    after: tuple[str, str] | None = None,
    tell: Callable[[Told], object] = lambda _: None,
) -> OperatorResult:
    """Compares one operator on a device with its reference.

    Args:
        op: An entry of PyTorch's operator database.
        device: The ``torch.device``.
        dtypes: Names of dtypes; those that the operator does not have on the CPU are left out.
        samples: How many of the entry's samples, per dtype.
        gradient: Also compare gradients.
        after: Dtype and direction of an earlier run's end; what follows them is compared.
        tell: Told at once where the run is and what it found, as the process may not survive.

    Returns:
        Every comparison that could be made.
    """
    parts = list(_parts(op, dtypes, gradient=gradient))
    if after is not None:
        parts = parts[parts.index(after) + 1 :]
    run = _Run(op=op, device=device, samples=samples, tell=tell)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype, direction in parts:
            run.compare(dtype, direction)
    return run.result


def _parts(op: Any, dtypes: Sequence[str], *, gradient: bool) -> Iterator[tuple[str, str]]:
    """Yields dtypes and directions that the operator has on the CPU."""
    import torch

    for name in dtypes:
        dtype = getattr(torch, name)
        if dtype in op.supported_dtypes("cpu"):
            yield name, FORWARD
        floating = dtype.is_floating_point or dtype.is_complex
        if not (gradient and floating and op.supports_autograd):
            continue
        if dtype in op.supported_backward_dtypes("cpu"):
            yield name, GRADIENT


class _Run:
    """One operator on one device."""

    def __init__(
        self, *, op: Any, device: Any, samples: int, tell: Callable[[Told], object]
    ) -> None:
        self._op, self._device, self._samples, self._tell = op, device, samples, tell
        self.result = OperatorResult(name=op.formatted_name)

    def compare(self, dtype: str, direction: str) -> None:
        """Compares every sample of a dtype."""
        import torch

        function = references.forward if direction == FORWARD else references.gradients
        kind = getattr(torch, dtype)
        place = Place(dtype=dtype, direction=direction, number=0, where=HOST)
        self._tell(place)
        for number, sample in enumerate(self._take_samples(kind, direction == GRADIENT)):

            def compute(on: Any, other: dict[Any, Any], seed: int, sample: Any = sample) -> Any:
                return function(self._op, sample, on, other, seed)

            self._tell(replace(place, number=number))
            reference = references.refer(
                compute,
                TOLERANCES.get(dtype, EXACT),
                contents=self._op.name not in UNINITIALISED | NOT_UNIQUE,
                wide=kind.is_floating_point or kind.is_complex,
            )
            if reference is not None:
                self._case(compute, reference, replace(place, number=number, where=DEVICE))

    def _take_samples(self, dtype: Any, requires_grad: bool) -> list[Any]:
        import torch

        torch.manual_seed(references.SEED)
        try:
            samples = self._op.sample_inputs("cpu", dtype, requires_grad=requires_grad)
            return list(islice(samples, self._samples))
        except Exception:  # noqa: BLE001 - the database has no sample of this dtype
            return []

    def _case(self, compute: Compute, reference: references.Reference, place: Place) -> None:
        self._tell(place)
        case = _judged(compute, reference, self._device, place)
        self.result.cases.append(case)
        self._tell(case)
        if case.status == PASS and not place.number:
            origins = _watched(compute, self._device)
            self.result.kernels.update(origins)
            self._tell(origins)


def _judged(compute: Compute, reference: references.Reference, device: Any, place: Place) -> Case:
    def case(status: str, error: Error | None = None, detail: str = "", kind: str = "") -> Case:
        return Case(
            dtype=place.dtype,
            direction=place.direction,
            number=place.number,
            status=status,
            reference=kind or reference.kind,
            error=error or Error(),
            detail=detail,
        )

    try:
        actual = compute(device, {}, references.SEED)
        error, kind = reference.judge(actual, TOLERANCES.get(place.dtype, EXACT), device.type)
    except AssertionError as difference:
        return case(FAIL, detail=first_line(difference))
    except Exception as raised:  # noqa: BLE001 - every kind of failure is a finding
        status = UNSUPPORTED if is_refusal(raised) else FAIL
        return case(status, detail=f"{type(raised).__name__}: {first_line(raised)}")
    if error.share > 1:
        said = f"error {error.absolute:.3g}, {error.share:.3g} x the tolerance"
        return case(FAIL, error, said, kind)
    return case(PASS, error, kind=kind)


def is_refusal(error: BaseException) -> bool:
    """Tells whether an error says that the device does not have something."""
    if isinstance(error, (NotImplementedError, RefusedError)):
        return True
    return isinstance(error, (RuntimeError, TypeError)) and bool(_REFUSALS.search(str(error)))


def _watched(compute: Compute, device: Any) -> dict[str, str]:
    """Runs a case again to see whose kernels it uses; the compared run is never a watched one."""
    from cuda_morph.trace.kernel_watch import watched_kernels

    try:
        with watched_kernels(device) as watch:
            compute(device, {}, references.SEED)
    except Exception:  # noqa: BLE001 - some operators refuse to be watched; nothing is known then
        return {}
    return watch.origins
