"""How far a result may be from the reference, by dtype, and how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuda_morph.frozen_record import frozen_record


@frozen_record
class Tolerance:
    """An element may differ by ``absolute + relative * |reference|``."""

    relative: float
    absolute: float

    def looser(self, other: Tolerance) -> Tolerance:
        """Returns what allows as much as either."""
        return Tolerance(
            relative=max(self.relative, other.relative),
            absolute=max(self.absolute, other.absolute),
        )


EXACT = Tolerance(relative=0.0, absolute=0.0)

TOLERANCES = {
    "float64": Tolerance(relative=1e-7, absolute=1e-7),
    "complex128": Tolerance(relative=1e-7, absolute=1e-7),
    "float32": Tolerance(relative=1e-4, absolute=1e-5),
    "complex64": Tolerance(relative=1e-4, absolute=1e-5),
    "float16": Tolerance(relative=5e-3, absolute=1e-3),
    "complex32": Tolerance(relative=5e-3, absolute=1e-3),
    "bfloat16": Tolerance(relative=2e-2, absolute=1e-2),
}
"""By dtype, of input or result, the coarser one; integers must agree exactly."""


class DifferenceError(AssertionError):
    """The result is not what the reference says."""


@frozen_record
class Error:
    """The largest error of a comparison."""

    absolute: float = 0.0
    relative: float = 0.0
    share: float = 0.0
    """Of what the tolerance allows; above 1 the comparison fails."""

    def worse(self, other: Error) -> Error:
        """Returns the one that uses more of its tolerance."""
        ours, theirs = (self.share, self.absolute), (other.share, other.absolute)
        return other if theirs > ours else self


def short(dtype: Any) -> str:
    """Returns a dtype's name without ``torch.``."""
    return str(dtype).removeprefix("torch.")


def measure(actual: Any, expected: Any, tolerance: Tolerance) -> Error:
    """Compares the values of two structures; shape and nesting must be the same.

    Args:
        actual: Result, of any device.
        expected: Reference on the CPU, possibly of a wider dtype.
        tolerance: What is allowed where a result is of a floating type.

    Returns:
        The largest error.

    Raises:
        DifferenceError: They differ in kind, so that no error can be told.
    """
    import torch

    if isinstance(expected, torch.Tensor):
        return _measure_tensor(actual, expected, tolerance)
    if isinstance(expected, Sequence) and not isinstance(expected, str):
        if not isinstance(actual, Sequence) or len(actual) != len(expected):
            raise DifferenceError(f"not {len(expected)} results as on the CPU")
        worst = Error()
        for one, other in zip(actual, expected, strict=True):
            worst = worst.worse(measure(one, other, tolerance))
        return worst
    if expected is None or isinstance(expected, (torch.device, torch.dtype)):
        return Error()
    if isinstance(expected, (float, complex)) and isinstance(actual, (float, complex)):
        wide = torch.complex128
        return measure(
            torch.tensor(actual, dtype=wide), torch.tensor(expected, dtype=wide), tolerance
        )
    if actual != expected:
        raise DifferenceError(f"{actual!r} instead of {expected!r}"[:200])
    return Error()


def _measure_tensor(actual: Any, expected: Any, tolerance: Tolerance) -> Error:
    import torch

    if not isinstance(actual, torch.Tensor):
        raise DifferenceError(f"a {type(actual).__name__} instead of a tensor")
    if actual.shape != expected.shape:
        raise DifferenceError(f"shape {tuple(actual.shape)} instead of {tuple(expected.shape)}")
    ours, theirs = _dense(actual), _dense(expected)
    if not (ours.is_floating_point() or ours.is_complex()):
        if not torch.equal(ours.to(theirs.dtype), theirs):
            wrong = int((ours.to(theirs.dtype) != theirs).sum())
            raise DifferenceError(f"{wrong} of {ours.numel()} values are not equal")
        return Error()
    wide = torch.complex128 if ours.is_complex() or theirs.is_complex() else torch.float64
    allowed = tolerance.looser(TOLERANCES.get(short(ours.dtype), EXACT))
    return _largest(ours.to(wide), theirs.to(wide), allowed)


def _dense(value: Any) -> Any:
    value = value.detach().cpu()
    value = value if str(value.layout) == "torch.strided" else value.to_dense()
    return value.dequantize() if value.is_quantized else value.resolve_conj().resolve_neg()


def _largest(ours: Any, theirs: Any, tolerance: Tolerance) -> Error:
    import torch

    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    ours, theirs = ours[~same], theirs[~same]
    if not ours.numel():
        return Error()
    finite = ours.isfinite() & theirs.isfinite()
    if not bool(finite.all()):
        count = int((~finite).sum())
        raise DifferenceError(f"{count} values are infinite or nan on one side only")
    size = theirs.abs()
    difference = (ours - theirs).abs()
    allowed = tolerance.absolute + tolerance.relative * size
    share = difference / allowed.clamp_min(torch.finfo(torch.float64).tiny)
    relative = difference / size.clamp_min(torch.finfo(torch.float64).tiny)
    place = int(share.argmax())
    return Error(
        absolute=float(difference[place]),
        relative=float(relative[place]) if float(size[place]) else float("inf"),
        share=float(share[place]),
    )


def check_kind(actual: Any, expected: Any, device_type: str) -> None:
    """Compares everything but values: number, shape, dtype, layout, and the place of tensors.

    Args:
        actual: The device's result.
        expected: The CPU's, of the same input dtype.
        device_type: Where tensors of the result must be.

    Raises:
        DifferenceError: They differ.
    """
    from cuda_morph.verification.structures import tensors

    ours, theirs = list(tensors(actual)), list(tensors(expected))
    if len(ours) != len(theirs):
        raise DifferenceError(f"{len(ours)} tensors instead of {len(theirs)}")
    for one, other in zip(ours, theirs, strict=True):
        if one.device.type != device_type:
            raise DifferenceError(f"a result is on the device {one.device}")
        for attribute in ("shape", "dtype", "layout"):
            mine, its = getattr(one, attribute), getattr(other, attribute)
            if mine != its:
                raise DifferenceError(f"{attribute} {mine} instead of {its}")
