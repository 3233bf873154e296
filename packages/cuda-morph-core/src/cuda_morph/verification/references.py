"""What the CPU says about one sample: in the sample's dtype, and in 64 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda_morph.frozen_record import frozen_record
from cuda_morph.verification import comparison
from cuda_morph.verification.comparison import DifferenceError, Error, Tolerance
from cuda_morph.verification.structures import HOST_ARGUMENTS, tensors, to_device

if TYPE_CHECKING:
    from collections.abc import Callable

SEED = 20240229
"""Of every call, on every device."""
_OTHER_SEED = 7

FLOAT64 = "float64"
"""The reference was computed in 64 bits."""
SAME_DTYPE = "same dtype"
"""The CPU's own result in this dtype is not within tolerance of 64 bits, or means something else
there; it is the reference."""
SHAPE_ONLY = "shape and dtype"
"""The operator is random, or its contents mean nothing."""


@frozen_record
class Reference:
    """What a device's result is held against."""

    kind: str
    values: Any
    same: Any = None
    """The CPU's result in the sample's dtype; ``None`` where the CPU has none."""
    exact: Any = None
    """Its result in 64 bits, where it is not within tolerance of that itself."""

    def judge(self, actual: Any, tolerance: Tolerance, device_type: str) -> tuple[Error, str]:
        """Measures a result.

        Where the CPU itself is inexact, as with half-precision products that it rounds after each
        step, a device that comes nearer to 64 bits is right too.

        Args:
            actual: The device's result.
            tolerance: Of the sample's dtype.
            device_type: Where the result must be.

        Returns:
            The largest error, and the kind of reference that it was measured against.

        Raises:
            DifferenceError: It differs in more than values.
        """
        if self.same is not None:
            comparison.check_kind(actual, self.same, device_type)
        if self.kind == SHAPE_ONLY:
            return Error(), self.kind
        try:
            error = comparison.measure(actual, self.values, tolerance)
        except DifferenceError:
            if not self._is_exact(actual, tolerance):
                raise
        else:
            if error.share <= 1 or not self._is_exact(actual, tolerance):
                return error, self.kind
        return comparison.measure(actual, self.exact, tolerance), FLOAT64

    def _is_exact(self, actual: Any, tolerance: Tolerance) -> bool:
        return self.exact is not None and _agree(actual, self.exact, tolerance)


def widened() -> dict[Any, Any]:
    """Returns which dtypes are computed in which for the reference."""
    import torch

    narrow = (torch.float32, torch.float16, torch.bfloat16)
    return {
        **dict.fromkeys(narrow, torch.float64),
        torch.complex64: torch.complex128,
        torch.complex32: torch.complex128,
    }


def refer(
    compute: Callable[[Any, dict[Any, Any], int], Any],
    tolerance: Tolerance,
    *,
    contents: bool,
    wide: bool,
) -> Reference | None:
    """Computes the reference of one sample on the CPU.

    Args:
        compute: Computes it: device, dtypes to exchange, seed.
        tolerance: Of the sample's dtype.
        contents: Whether the values mean anything.
        wide: Whether 64 bits tell more than the sample's own dtype.

    Returns:
        The reference; ``None`` where the CPU refuses the sample.
    """
    import torch

    from cuda_morph.verification.random_watch import RandomWatch

    def attempt(dtypes: dict[Any, Any], seed: int) -> Any:
        try:
            return compute(torch.device("cpu"), dtypes, seed)
        except Exception:  # noqa: BLE001 - whatever the CPU refuses is no reference
            return None

    same = attempt({}, SEED)
    # Many entries of the database seed by themselves, so another seed alone tells too little.
    watch = RandomWatch()
    with watch:
        again = attempt({}, _OTHER_SEED)
    random = watch.seen or (again is not None and not _agree(again, same))
    if same is not None and (random or not contents):
        return Reference(kind=SHAPE_ONLY, values=same, same=same)
    exact = attempt(widened(), SEED) if wide else None
    if exact is not None and (same is None or _agree(same, exact, tolerance)):
        return Reference(kind=FLOAT64, values=exact, same=same)
    if same is None:
        return None
    return Reference(kind=SAME_DTYPE, values=same, same=same, exact=exact)


def _agree(one: Any, other: Any, tolerance: Tolerance = comparison.EXACT) -> bool:
    try:
        return comparison.measure(one, other, tolerance).share <= 1
    except (DifferenceError, RuntimeError, TypeError):
        return False


def forward(op: Any, sample: Any, device: Any, dtypes: dict[Any, Any], seed: int = SEED) -> Any:
    """Returns an operator's result for a sample."""
    return _call(op, sample, device, dtypes, seed)[0]


def _call(op: Any, sample: Any, device: Any, dtypes: dict[Any, Any], seed: int) -> tuple[Any, Any]:
    import torch

    others = torch.device("cpu") if op.name in HOST_ARGUMENTS else device
    inputs = (
        to_device(sample.input, device, dtypes),
        *to_device(tuple(sample.args), others, dtypes),
    )
    keywords = to_device(sample.kwargs, others, dtypes)
    torch.manual_seed(seed)
    return sample.output_process_fn_grad(op(*inputs, **keywords)), (inputs, keywords)


def gradients(op: Any, sample: Any, device: Any, dtypes: dict[Any, Any], seed: int = SEED) -> Any:
    """Returns the gradients of a sample's inputs, ``None`` where an input has none.

    Raises:
        ValueError: Nothing of the sample can be differentiated.
    """
    import torch

    output, arguments = _call(op, sample, device, dtypes, seed)
    leaves = [leaf for leaf in tensors(arguments) if leaf.requires_grad]
    outputs = [one for one in tensors(output) if one.requires_grad]
    if not leaves or not outputs:
        raise ValueError("nothing to differentiate")
    directions = [_direction(one) for one in outputs]
    return list(torch.autograd.grad(outputs, leaves, directions, allow_unused=True))


def _direction(output: Any) -> Any:
    """Returns a vector of eighths, which every floating dtype holds exactly.

    No random operator makes them: it would make the gradient look random.
    """
    import torch

    number = torch.arange(output.numel()).reshape(output.shape)

    def eighths(factor: int) -> Any:
        return ((number * factor + 11) % 33 - 16).to(torch.float64) / 8

    values = torch.complex(eighths(7), eighths(5)) if output.is_complex() else eighths(7)
    return values.to(output.dtype).to(output.device)
