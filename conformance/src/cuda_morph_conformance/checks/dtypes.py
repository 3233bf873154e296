"""Element types: making, converting and computing with each, against the CPU's values."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from cuda_morph_conformance.expectations import require_equal, require_on
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from cuda_morph_conformance.subject import Subject

_ROUNDING = {
    "float64": 1e-12,
    "float32": 1e-5,
    "float16": 4e-3,
    "bfloat16": 4e-2,
    "complex64": 1e-5,
    "complex128": 1e-12,
}
"""Relative error that a few roundings of the type may leave."""
_NUMBERS = [1.5, -2.25, 0.5, 3.0, -0.75, 4.0, 0.125, -1.0, 2.0]
_WHOLE = [1, 2, 0, 3, 7, 4, 100, 5, 6]


@check("CM-DTYP-001", level=Level.RUNS, requires=("dtype.float64",), since="1.0", devices=1)
def float64_computes(subject: Subject) -> None:
    """float64 MUST keep double precision in conversion, arithmetic and matrix products.

    Fix: claim ``dtype.float64`` as never where the card lacks it, and name a substitute in
    ``cuda_morph_dtypes``; do not compute in float32 silently.
    """
    import torch

    floating(subject, "float64")
    tiny = torch.tensor([1.0], dtype=torch.float64, device="cuda") + 2.0**-40
    require_equal(tiny.item() - 1.0, 2.0**-40, "1 + 2**-40 - 1: precision was lost")


@check("CM-DTYP-002", level=Level.RUNS, requires=("dtype.float32",), since="1.0", devices=1)
def float32_computes(subject: Subject) -> None:
    """float32 MUST give the CPU's values in conversion, arithmetic and matrix products.

    Fix: compare the kernel that the message names with the CPU's.
    """
    floating(subject, "float32")


@check("CM-DTYP-003", level=Level.RUNS, requires=("dtype.float16",), since="1.0", devices=1)
def float16_computes(subject: Subject) -> None:
    """float16 MUST have its precision and range: 65504 is the largest number, then infinity.

    Fix: convert with rounding to nearest, and let overflow give infinity.
    """
    import torch

    floating(subject, "float16")
    large = torch.tensor([60000.0, 70000.0], device="cuda").half()
    require_equal(large.isinf().tolist(), [False, True], "isinf of 60000 and 70000 in float16")


@check("CM-DTYP-004", level=Level.RUNS, requires=("dtype.bfloat16",), since="1.0", devices=1)
def bfloat16_computes(subject: Subject) -> None:
    """bfloat16 MUST have the range of float32 and eight bits of precision.

    Fix: convert with rounding to nearest even, not by cutting bits off.
    """
    import torch

    floating(subject, "bfloat16")
    made = torch.tensor([1e38, 1.0 + 2.0**-9, 1.0 + 3 * 2.0**-8], device="cuda").bfloat16()
    require(made[0].isfinite().item(), "1e38 is infinite in bfloat16")
    require_equal(made[1:].tolist(), [1.0, 1.015625], "rounding to nearest even")
    require_equal(torch.cuda.is_bf16_supported(), True, "torch.cuda.is_bf16_supported()")


@check("CM-DTYP-005", level=Level.RUNS, requires=("dtype.float8_e4m3fn",), since="1.0", devices=1)
def float8_e4m3fn_converts(subject: Subject) -> None:
    """float8_e4m3fn MUST be made on the device and convert to the values that the CPU gives.

    Fix: register ``copy_`` between float8 and the other floating types.
    """
    eight_bits(subject, "float8_e4m3fn")


@check("CM-DTYP-006", level=Level.RUNS, requires=("dtype.float8_e5m2",), since="1.0", devices=1)
def float8_e5m2_converts(subject: Subject) -> None:
    """float8_e5m2 MUST be made on the device and convert to the values that the CPU gives.

    Fix: register ``copy_`` between float8 and the other floating types.
    """
    eight_bits(subject, "float8_e5m2")


@check("CM-DTYP-010", level=Level.RUNS, requires=("dtype.int64",), since="1.0", devices=1)
def int64_computes(subject: Subject) -> None:
    """int64 MUST keep all 63 bits in copies, arithmetic, sums and as an index.

    Fix: do not compute int64 as int32 or float on the device.
    """
    import torch

    whole(subject, "int64")
    large = torch.tensor([2**62, 2**40 + 1], device="cuda")
    require_equal((large - 1).tolist(), [2**62 - 1, 2**40], "2**62 - 1 and 2**40")
    table = torch.arange(10.0, device="cuda")
    require_equal(table[torch.tensor([9, 0, -1], device="cuda")].tolist(), [9, 0, 9], "indexing")
    require_equal(torch.full((3,), 2**40, device="cuda").sum().item(), 3 * 2**40, "a sum")


@check("CM-DTYP-011", level=Level.RUNS, requires=("dtype.int32",), since="1.0", devices=1)
def int32_computes(subject: Subject) -> None:
    """int32 MUST give the CPU's values in conversion, arithmetic and reductions.

    Fix: compare the kernel that the message names with the CPU's.
    """
    whole(subject, "int32")


@check("CM-DTYP-012", level=Level.RUNS, requires=("dtype.int16",), since="1.0", devices=1)
def int16_computes(subject: Subject) -> None:
    """int16 MUST give the CPU's values in conversion, arithmetic and reductions.

    Fix: compare the kernel that the message names with the CPU's.
    """
    whole(subject, "int16")


@check("CM-DTYP-013", level=Level.RUNS, requires=("dtype.int8",), since="1.0", devices=1)
def int8_computes(subject: Subject) -> None:
    """int8 MUST give the CPU's values, and wrap around as the CPU does.

    Fix: compare the kernel that the message names with the CPU's.
    """
    whole(subject, "int8")
    _require_wraps("int8", 127, -128)


@check("CM-DTYP-014", level=Level.RUNS, requires=("dtype.uint8",), since="1.0", devices=1)
def uint8_computes(subject: Subject) -> None:
    """uint8 MUST give the CPU's values, and wrap around as the CPU does.

    Fix: compare the kernel that the message names with the CPU's.
    """
    whole(subject, "uint8")
    _require_wraps("uint8", 255, 0)


@check("CM-DTYP-015", level=Level.RUNS, requires=("dtype.bool",), since="1.0", devices=1)
def bool_computes(subject: Subject) -> None:
    """Booleans MUST work in logic, masks, counting, any and all.

    Fix: register ``logical_and``, ``masked_fill_``, ``nonzero``, ``any`` and ``all``.
    """
    import torch

    mask = torch.tensor([True, False, True, False], device="cuda")
    other = torch.tensor([1, 1, 0, 0], device="cuda").bool()
    require_on(other, subject, "bool()", index=torch.cuda.current_device())
    for what, seen, expected in (
        ("and", mask & other, [True, False, False, False]),
        ("or", mask | other, [True, True, True, False]),
        ("not", ~mask, [False, True, False, True]),
        ("xor", mask ^ other, [False, True, True, False]),
        ("where", torch.where(mask, 1, 2), [1, 2, 1, 2]),
        ("masked_fill", torch.zeros(4, device="cuda").masked_fill(mask, 5), [5, 0, 5, 0]),
        ("indexing", torch.arange(4, device="cuda")[mask], [0, 2]),
        ("comparison", torch.arange(4, device="cuda") < 2, [True, True, False, False]),  # noqa: PLR2004
    ):
        require_equal(seen.tolist(), expected, what)
    require_equal((mask.sum().item(), mask.sum().dtype), (2, torch.int64), "sum")
    require_equal((mask.any().item(), mask.all().item()), (True, False), "any and all")


@check("CM-DTYP-016", level=Level.RUNS, requires=("dtype.complex64",), since="1.0", devices=1)
def complex64_computes(subject: Subject) -> None:
    """complex64 MUST give the CPU's values in arithmetic, parts, conjugation and magnitude.

    Fix: register the complex variants, or claim ``dtype.complex64`` as never.
    """
    complex_numbers(subject, "complex64")


@check("CM-DTYP-017", level=Level.RUNS, requires=("dtype.complex128",), since="1.0", devices=1)
def complex128_computes(subject: Subject) -> None:
    """complex128 MUST give the CPU's values in arithmetic, parts, conjugation and magnitude.

    Fix: register the complex variants, or claim ``dtype.complex128`` as never.
    """
    complex_numbers(subject, "complex128")


@check("CM-DTYP-020", level=Level.RUNS, requires=("dtype.tf32",), since="1.0", devices=1)
def reduced_precision_is_a_switch(_subject: Subject) -> None:
    """allow_tf32 and set_float32_matmul_precision MUST switch; "highest" MUST be full float32.

    Fix: read ``torch.get_float32_matmul_precision`` where the device chooses its product kernel.
    """
    import torch

    matmul = torch.backends.cuda.matmul
    before = torch.get_float32_matmul_precision()
    left = torch.linspace(0.1, 1.7, 64 * 64, device="cuda").reshape(64, 64)
    exact = left.cpu().double() @ left.cpu().double()
    try:
        for precision, allowed, error in (("high", True, 1e-2), ("highest", False, 1e-5)):
            torch.set_float32_matmul_precision(precision)
            require_equal(matmul.allow_tf32, allowed, f"allow_tf32 at {precision!r}")
            seen = ((left @ left).cpu().double() - exact).abs().max() / exact.abs().max()
            require(seen.item() < error, f"at {precision!r} products are off by {seen.item():.2g}")
            require_equal(
                (left @ left).dtype, torch.float32, f"dtype of a product at {precision!r}"
            )
    finally:
        torch.set_float32_matmul_precision(before)


@check("CM-DTYP-021", level=Level.RUNS, requires=("dtype.legacy_types",), since="1.0", devices=1)
def legacy_types_make_tensors(subject: Subject) -> None:
    """torch.cuda.FloatTensor and its like MUST make device tensors of their dtype.

    Fix: nothing in the plugin; core supplies the classes.
    """
    import torch

    index = torch.cuda.current_device()
    for name, dtype in {
        "FloatTensor": torch.float32,
        "HalfTensor": torch.float16,
        "LongTensor": torch.int64,
        "IntTensor": torch.int32,
        "ByteTensor": torch.uint8,
        "BoolTensor": torch.bool,
    }.items():
        kind = getattr(torch.cuda, name)
        made = kind([1, 0, 1])
        require_on(made, subject, f"torch.cuda.{name}", index=index)
        require_equal(
            (made.dtype, made.tolist()), (dtype, [1, 0, 1]), f"torch.cuda.{name}([1, 0, 1])"
        )
        require_equal(kind(2, 3).shape, (2, 3), f"shape of torch.cuda.{name}(2, 3)")
        require(isinstance(made, kind), f"it is no instance of torch.cuda.{name}")
    require(
        not isinstance(torch.cuda.FloatTensor(1), torch.cuda.HalfTensor), "isinstance of another"
    )


@check("CM-DTYP-022", level=Level.RUNS, requires=("dtype.legacy_types",), since="1.0", devices=1)
def legacy_type_names_convert(subject: Subject) -> None:
    """Tensor.type with a torch.cuda name or class MUST move and convert, and type() name the type.

    Fix: nothing in the plugin; core interprets the names.
    """
    import torch

    index = torch.cuda.current_device()
    for name, dtype in {"FloatTensor": torch.float32, "LongTensor": torch.int64}.items():
        for kind in (f"torch.cuda.{name}", getattr(torch.cuda, name)):
            moved = torch.tensor([1, 2], dtype=torch.int32).type(kind)
            require_on(moved, subject, f".type({kind})", index=index)
            require_equal((moved.dtype, moved.tolist()), (dtype, [1, 2]), f".type({kind})")
    there = torch.ones(1, device="cuda")
    require_equal(there.type(there.type()).dtype, torch.float32, f".type({there.type()!r})")
    require_equal(there.type(torch.float16).dtype, torch.float16, ".type(torch.float16)")


@check("CM-DTYP-023", level=Level.RUNS, requires=("dtype.legacy_types",), since="1.0", devices=1)
def default_tensor_type_is_taken(subject: Subject) -> None:
    """set_default_tensor_type("torch.cuda.FloatTensor") MUST place new tensors on the device.

    Fix: nothing in the plugin; core turns it into a default device and dtype.
    """
    import torch

    index = torch.cuda.current_device()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.set_default_tensor_type("torch.cuda.HalfTensor")
            made = torch.ones(2)
        finally:
            torch.set_default_tensor_type("torch.FloatTensor")
    require_on(made, subject, "ones with another default type", index=index)
    require_equal(made.dtype, torch.float16, "its dtype")
    after = torch.ones(1)
    require_equal((after.device.type, after.dtype), ("cpu", torch.float32), "ones afterwards")


@check("CM-DTYP-024", level=Level.RUNS, requires=("dtype.float32", "dtype.int64", "dtype.bool"),
       since="1.0", devices=1)  # fmt: skip
def types_are_promoted(_subject: Subject) -> None:
    """Mixed types MUST be promoted as on the CPU, and conversions round towards zero.

    Fix: use TensorIterator's common dtype in binary kernels.
    """
    import torch

    values = {
        "int64": torch.tensor([1, 2]),
        "float32": torch.tensor([1.5, -2.5]),
        "bool": torch.tensor([True, False]),
    }
    for first, left in values.items():
        for second, right in values.items():
            here, there = left + right, left.cuda() + right.cuda()
            require_equal(there.dtype, here.dtype, f"dtype of {first} + {second}")
            require_equal(there.tolist(), here.tolist(), f"{first} + {second}")
        require_equal((left.cuda() * 0.5).dtype, (left * 0.5).dtype, f"dtype of {first} * 0.5")
    cut = torch.tensor([1.9, -1.9, 0.0], device="cuda")
    require_equal(cut.long().tolist(), [1, -1, 0], "float32 to int64")
    require_equal(cut.bool().tolist(), [True, True, False], "float32 to bool")


def floating(subject: Subject, name: str) -> None:
    """Make, convert and compute with a floating type, against float64 on the CPU.

    Raises:
        CheckFailed: A result has another type, place or value.
    """
    import torch

    dtype = getattr(torch, name)
    matrix = torch.tensor(_NUMBERS, dtype=torch.float64).reshape(3, 3)
    there = matrix.to("cuda", dtype)
    require_on(there, subject, f"conversion to {name}", index=torch.cuda.current_device())
    require_equal(torch.ones(2, dtype=dtype, device="cuda").tolist(), [1.0, 1.0], f"ones of {name}")
    special = torch.tensor([float("nan"), -float("inf")], dtype=dtype, device="cuda")
    kinds = (special.isnan().tolist(), special.isinf().tolist())
    require_equal(kinds, ([True, False], [False, True]), f"isnan and isinf of nan, -inf in {name}")
    for what, seen, expected in (
        ("conversion", there, matrix),
        ("a sum", there + 0.5, matrix + 0.5),
        ("a quotient", there / there.t(), matrix / matrix.t()),
        ("a matrix product", there @ there, matrix @ matrix),
        ("a reduction", there.sum(0), matrix.sum(0)),
        ("a maximum", there.amax(1), matrix.amax(1)),
        ("exp", there.exp(), matrix.exp()),
    ):
        _require_near(seen, expected, name, what)


def whole(subject: Subject, name: str) -> None:
    """Make, convert and compute with an integer type, against the CPU.

    Raises:
        CheckFailed: A result has another type, place or value.
    """
    import torch

    dtype = getattr(torch, name)
    here = torch.tensor(_WHOLE, dtype=dtype)
    there = here.cuda()
    require_on(there, subject, f"a tensor of {name}", index=torch.cuda.current_device())
    operations: dict[str, Callable[[Tensor], Tensor]] = {
        "arithmetic": lambda x: x * 2 + 3 - x,
        "floor division": lambda x: x // 3,
        "remainder": lambda x: x % 3,
        "shift": lambda x: x << 1,
        "bits": lambda x: (x & 6) | 1,
        "a reduction": lambda x: x.sum(),
        "a maximum": lambda x: x.max(),
        "sorting": lambda x: x.sort().values,
        "comparison": lambda x: x > 3,  # noqa: PLR2004 - any number
        "true division": lambda x: x / 2,
        "conversion": lambda x: x.float(),
    }
    for what, operate in operations.items():
        expected, seen = operate(here), operate(there)
        require_equal(seen.dtype, expected.dtype, f"dtype of {what} in {name}")
        require_equal(seen.tolist(), expected.tolist(), f"{what} in {name}")
    made = torch.full((2,), 3, dtype=dtype, device="cuda")
    require_equal((made.dtype, made.tolist()), (dtype, [3, 3]), f"full in {name}")


def eight_bits(subject: Subject, name: str) -> None:
    """Convert to and from an eight-bit floating type on the device, against the CPU.

    Raises:
        CheckFailed: A result has another type, place or value.
    """
    import torch

    dtype = getattr(torch, name)
    values = torch.tensor([0.0, 1.0, -1.5, 0.3, 17.0, 200.0, 1e-3])
    made = values.cuda().to(dtype)
    require_on(made, subject, f"conversion to {name}", index=torch.cuda.current_device())
    require_equal((made.dtype, made.element_size()), (dtype, 1), f"type of {name}")
    for wide in (torch.float32, torch.float16):
        expected = values.to(dtype).to(wide).tolist()
        require_equal(made.to(wide).tolist(), expected, f"{name} to {wide}")
    require_equal(made.cpu().float().tolist(), values.to(dtype).float().tolist(), "after .cpu()")
    empty = torch.empty(3, dtype=dtype, device="cuda")
    require_equal(empty.copy_(values[:3]).float().tolist(), [0.0, 1.0, -1.5], f"copy_ into {name}")


def complex_numbers(subject: Subject, name: str) -> None:
    """Make and compute with a complex type on the device, against the CPU.

    Raises:
        CheckFailed: A result has another type, place or value.
    """
    import torch

    dtype = getattr(torch, name)
    here = torch.tensor([[1 + 2j, -0.5j], [3.0, -1 - 1j]], dtype=dtype)
    there = here.cuda()
    require_on(there, subject, f"a tensor of {name}", index=torch.cuda.current_device())
    for what, seen, expected in (
        ("a copy", there, here),
        ("arithmetic", there * (2 - 1j) + 1, here * (2 - 1j) + 1),
        ("a matrix product", there @ there, here @ here),
        ("the conjugate", there.conj().resolve_conj(), here.conj().resolve_conj()),
        ("magnitude", there.abs(), here.abs()),
        ("angle", there.angle(), here.angle()),
        ("real part", there.real, here.real),
        ("imaginary part", there.imag, here.imag),
        ("a sum", there.sum(), here.sum()),
    ):
        require_equal(seen.dtype, expected.dtype, f"dtype of {what}")
        _require_near(seen, expected, name, what)


def _require_near(seen: Tensor, expected: Tensor, name: str, what: str) -> None:
    import torch

    wide = torch.complex128 if expected.is_complex() else torch.float64
    ours, theirs = seen.cpu().to(wide), expected.to(wide)
    bound = _ROUNDING[name] * theirs.abs().clamp(min=1)
    near = bool(((ours - theirs).abs() <= bound).all())
    require(near, f"{what} in {name}: {ours.tolist()}, expected {theirs.tolist()}")


def _require_wraps(name: str, last: int, after: int) -> None:
    import torch

    made = torch.tensor([last], dtype=getattr(torch, name), device="cuda") + 1
    require_equal(made.tolist(), [after], f"{last} + 1 in {name}")
