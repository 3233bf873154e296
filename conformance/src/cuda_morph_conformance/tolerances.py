"""How close a device must come to the reference: per dtype, per kind of computation, with reasons.

Three kinds of computation differ in how far two correct implementations may be apart:

* `SINGLE`: one rounding per result, such as an addition or a copy between dtypes. The numbers are
  the defaults of ``torch.testing.assert_close``, which PyTorch uses for its own operators on all
  devices (https://docs.pytorch.org/docs/stable/testing.html).
* `PRODUCT`: sums of up to 512 terms of size one in an order that the hardware chooses: matrix
  products, convolutions, norms, and a few of them in a row with their gradients. A sum of n terms
  in any order is within n * u * sum|terms| (Higham, Accuracy and Stability of Numerical
  Algorithms, 2nd ed., section 4.2), with u = 2**-24 for float32: 512 * 6e-8 = 3e-5 of the sum of
  magnitudes. The tolerance is three times that, for about three such sums in a row.
* `TRAINING`: results after the checklist's training runs of at most `STEPS` steps. Float32 on a CPU
  departs from the same run in float64 by at most 2e-6 (measured on x86-64 for every program of
  `cuda_morph_conformance.models` with SGD, Adam and AdamW); hardware that sums in another order
  gets 250 times as much. A dropped term or a gradient applied twice is 1e-2 away and more.

The half precisions compute with 2**-11 (float16) and 2**-8 (bfloat16) per rounding; their products
are allowed a few roundings of inputs and results, accumulation being float32 on all accelerators
that this project knows.

Checks set the precision of float32 products to ``highest`` first: a device that computes them with
ten bits by default must honour that switch, as CUDA does for TF32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cuda_morph_conformance.registry import CheckFailed

if TYPE_CHECKING:
    from torch import Tensor

SEED = 20_260_613
"""Where every random number of the checklist comes from."""

STEPS = 10
"""Length of the checklist's training runs."""

SINGLE = "single"
PRODUCT = "product"
TRAINING = "training"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Passes when ``|seen - expected| <= absolute + relative * |expected|``, for every element."""

    relative: float
    absolute: float


TOLERANCES: dict[str, dict[str, Tolerance]] = {
    SINGLE: {
        "float64": Tolerance(1e-7, 1e-7),
        "float32": Tolerance(1.3e-6, 1e-5),
        "float16": Tolerance(1e-3, 1e-5),
        "bfloat16": Tolerance(1.6e-2, 1e-5),
        "complex64": Tolerance(1.3e-6, 1e-5),
        "complex128": Tolerance(1e-7, 1e-7),
    },
    PRODUCT: {
        "float64": Tolerance(1e-7, 1e-7),
        "float32": Tolerance(1e-4, 1e-4),
        "float16": Tolerance(5e-3, 5e-3),
        "bfloat16": Tolerance(4e-2, 4e-2),
        "complex64": Tolerance(1e-4, 1e-4),
        "complex128": Tolerance(1e-7, 1e-7),
    },
    TRAINING: {
        "float64": Tolerance(1e-6, 1e-6),
        "float32": Tolerance(5e-4, 5e-4),
        "float16": Tolerance(3e-2, 3e-2),
        "bfloat16": Tolerance(1e-1, 1e-1),
    },
}
"""By kind of computation and dtype. Integers and booleans must be equal."""


def require_close(
    seen: Tensor, expected: Tensor, what: str, *, kind: str = SINGLE, dtype: str | None = None
) -> None:
    """Fail the running check unless two tensors agree, on the CPU and in double precision.

    Args:
        seen: What the device computed.
        expected: The reference, of the same shape.
        what: What the tensor is, for the message.
        kind: `SINGLE`, `PRODUCT` or `TRAINING`.
        dtype: Name of the dtype that was computed in; that of `seen` unless given.

    Raises:
        CheckFailed: Shapes differ, or an element is further away than the tolerance.
    """
    import torch

    if seen.shape != expected.shape:
        raise CheckFailed(f"{what}: shape {tuple(seen.shape)}, expected {tuple(expected.shape)}")
    name = dtype or str(seen.dtype).removeprefix("torch.")
    tolerance = TOLERANCES[kind].get(name, Tolerance(0.0, 0.0))
    wide = torch.complex128 if seen.is_complex() else torch.float64
    ours, theirs = seen.detach().cpu().to(wide), expected.detach().cpu().to(wide)
    bound = tolerance.absolute + tolerance.relative * theirs.abs()
    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    wrong = ~(same | ((ours - theirs).abs() <= bound))
    if not wrong.any():
        return
    first = tuple(wrong.nonzero()[0].tolist())
    raise CheckFailed(
        f"{what}: {int(wrong.sum())} of {wrong.numel()} elements differ, first at {first}: "
        f"{ours[first].item():.7g}, expected {theirs[first].item():.7g} "
        f"({kind} tolerance of {name}: {tolerance.relative:g} relative, "
        f"{tolerance.absolute:g} absolute)"
    )
