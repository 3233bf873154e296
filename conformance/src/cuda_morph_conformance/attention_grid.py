"""The shapes and options that attention is judged on, and the judgement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.attention_reference import CAP, Case, reference

if TYPE_CHECKING:
    from collections.abc import Iterator

TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 5e-3, "bfloat16": 4e-2}
"""Largest difference to the reference, relative to the largest value, by dtype."""

_LENGTHS = ((5, 5), (1, 7), (4, 9), (9, 4))
_HEADS = ((4, 4), (4, 2), (4, 1))
_LIMITS: tuple[dict[str, Any], ...] = (
    {},
    {"causal": True},
    {"window": (2, 1)},
    {"window": (3, -1)},
    {"window": (-1, 2)},
    {"window": (2, 0), "causal": True},
    {"window": (0, 0)},
    {"window": (99, 99), "causal": True},
)
_SCORES: tuple[dict[str, Any], ...] = (
    {},
    {"softcap": CAP},
    {"alibi": "heads"},
    {"alibi": "batch", "softcap": CAP},
    {"scale": 0.3},
)


def grid() -> Iterator[Case]:
    """Yields every case: lengths x heads x limits x scores, and head dimensions besides."""
    for (queries, keys), (heads, key_heads), limit, score in product(
        _LENGTHS, _HEADS, _LIMITS, _SCORES
    ):
        yield Case(queries=queries, keys=keys, heads=heads, key_heads=key_heads, **limit, **score)
    for limit, score in product(_LIMITS, _SCORES[:3]):
        yield Case(batch=1, queries=17, keys=33, heads=2, key_heads=1, **limit, **score)
    for dim, limit in product((8, 32, 64, 80, 128, 256), _LIMITS[:3]):
        yield Case(batch=1, queries=3, keys=6, heads=2, key_heads=2, dim=dim, **limit)


Attention = Callable[[Any, Any, Any, Case], tuple[Any, Any]]
"""Takes queries, keys, values and a case; returns output and logarithms (or ``None``)."""


def difference(
    attention: Attention, case: Case, *, device: str, dtype: Any, backward: bool = True
) -> str:
    """Compares an implementation with the reference.

    Args:
        attention: The implementation.
        case: Shapes and options.
        device: Where it runs.
        dtype: Dtype of its tensors.
        backward: Whether gradients are compared too.

    Returns:
        What differs, in words; empty when nothing does.
    """
    import torch

    exact = [tensor.to(dtype).double().requires_grad_() for tensor in case.tensors()]
    given = [tensor.detach().to(device, dtype).requires_grad_(backward) for tensor in exact]
    out, lse = attention(given[0], given[1], given[2], case)
    wanted, wanted_lse = reference(case, *exact)
    limit = TOLERANCE[str(dtype).removeprefix("torch.")]
    pairs = [("output", out, wanted)]
    pairs += [] if lse is None else [("logarithms", lse, wanted_lse)]
    if backward:
        seed = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(1)).to(dtype)
        out.backward(seed.to(device))
        wanted.backward(seed.double())
        names = ("gradient of queries", "gradient of keys", "gradient of values")
        grads = [_gradient(tensor) for tensor in given]
        pairs += list(zip(names, grads, [tensor.grad for tensor in exact], strict=True))
    return "; ".join(filter(None, (_compare(*pair, limit) for pair in pairs)))


def _gradient(tensor: Any) -> Any:
    import torch

    return torch.zeros_like(tensor) if tensor.grad is None else tensor.grad


def _compare(name: str, got: Any, wanted: Any, limit: float) -> str:
    import torch

    got = got.detach().cpu().double()
    wanted = wanted.detach()
    if got.shape != wanted.shape:
        return f"{name} has shape {tuple(got.shape)}, not {tuple(wanted.shape)}"
    if not torch.equal(torch.isfinite(got), torch.isfinite(wanted)):
        return f"{name} is infinite or NaN elsewhere"
    finite = torch.isfinite(wanted)
    if not torch.equal(got[~finite], wanted[~finite]):
        return f"{name} is infinite with another sign"
    error = float((got - wanted)[finite].abs().max()) if bool(finite.any()) else 0.0
    size = float(wanted[finite].abs().max().clamp(min=1.0)) if bool(finite.any()) else 1.0
    return f"{name} is off by {error:.2g}" if error > limit * size else ""


def packed(lengths: tuple[tuple[int, int], ...], case: Case) -> tuple[Any, Any, Any, Any, Any]:
    """Returns packed queries, keys and values in float64, and where sequences begin and end.

    Args:
        lengths: Queries and keys of each sequence.
        case: Heads and dimension; its lengths are not read, and its batch is their number.
    """
    import torch

    parts = [
        replace(case, batch=1, queries=queries, keys=keys).tensors(seed=index)
        for index, (queries, keys) in enumerate(lengths)
    ]
    query, key, value = (torch.cat([part[n][0] for part in parts]) for n in range(3))
    ends = [
        torch.tensor([0, *(pair[n] for pair in lengths)]).cumsum(0).to(torch.int32)
        for n in range(2)
    ]
    return query, key, value, ends[0], ends[1]


def packed_reference(
    lengths: tuple[tuple[int, int], ...], case: Case, query: Any, key: Any, value: Any
) -> tuple[Any, Any]:
    """Computes attention within packed sequences, one sequence after the other.

    Returns:
        Output (T, H, Dv) and logarithms (H, T).
    """
    import torch

    outs, lses = [], []
    q0 = k0 = 0
    slopes = case.slopes()
    for index, (queries, keys) in enumerate(lengths):
        if queries == 0:
            k0 += keys
            continue
        rows, columns = slice(q0, q0 + queries), slice(k0, k0 + keys)
        mine = slopes[index : index + 1] if case.alibi == "batch" else slopes
        out, lse = reference(
            case, query[None, rows], key[None, columns], value[None, columns], slopes=mine
        )
        outs.append(out[0])
        lses.append(lse[0])
        q0, k0 = q0 + queries, k0 + keys
    return torch.cat(outs), torch.cat(lses, dim=1)
