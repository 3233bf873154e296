"""The simulated device's fused attention: scores exist for one block of keys at a time.

The forward pass keeps a running maximum and sum (online softmax), the backward pass computes each
block's probabilities anew from the saved logarithms; dropout is repeated from its seed. So memory
grows with the length of a sequence and not with its square, as in a vendor's kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - imported by the first call of a kernel only

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK = 64
"""Keys per block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The options of one call, in core's words."""

    scale: float
    causal: bool = False
    window: tuple[int, int] = (-1, -1)
    softcap: float = 0.0
    alibi_slopes: Any = None
    mask: Any = None
    dropout_p: float = 0.0
    deterministic: bool = False
    return_lse: bool = False


def forward(query: Any, key: Any, value: Any, **options: Any) -> tuple[Any, Any]:
    """Computes attention over (batch, sequence, heads, dimension).

    Args:
        query: (B, Sq, H, D).
        key: (B, Sk, Hk, D).
        value: (B, Sk, Hk, Dv).
        options: As `cuda_morph.records.AttentionKernel` says.

    Returns:
        Output (B, Sq, H, Dv) and logarithms (B, H, Sq).
    """
    heads = [tensor.transpose(1, 2) for tensor in (query, key, value)]
    out, lse = _Blocked.apply(*heads, Plan(**options))
    return out.transpose(1, 2), lse


def varlen(
    query: Any,
    key: Any,
    value: Any,
    *,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    max_seqlen_q: int,
    max_seqlen_k: int,
    **options: Any,
) -> tuple[Any, Any]:
    """Computes attention within packed sequences (total, heads, dimension).

    Returns:
        Output (Tq, H, Dv) and logarithms (H, Tq).
    """
    del max_seqlen_q, max_seqlen_k
    spans = zip(pairwise(cu_seqlens_q.tolist()), pairwise(cu_seqlens_k.tolist()), strict=True)
    parts = [
        forward(
            query[None, q0:q1], key[None, k0:k1], value[None, k0:k1], **_of_member(options, index)
        )
        for index, ((q0, q1), (k0, k1)) in enumerate(spans)
    ]
    return torch.cat([out[0] for out, _ in parts]), torch.cat([lse[0] for _, lse in parts], 1)


def kvcache(
    query: Any,
    key_cache: Any,
    value_cache: Any,
    *,
    cache_seqlens: Any,
    block_table: Any = None,
    cache_rows: Any = None,
    cache_starts: Any = None,
    **options: Any,
) -> tuple[Any, Any]:
    """Computes attention of new queries over a cache in rows or pages.

    Returns:
        Output (B, Sq, H, Dv) and logarithms (B, H, Sq).
    """
    ends = cache_seqlens.tolist()
    starts = [0] * len(ends) if cache_starts is None else cache_starts.tolist()
    rows = list(range(len(ends))) if cache_rows is None else cache_rows.tolist()
    parts = []
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if block_table is None:
            stored = [cache[rows[index]] for cache in (key_cache, value_cache)]
        else:
            pages = block_table[index].long()
            stored = [cache[pages].flatten(0, 1) for cache in (key_cache, value_cache)]
        keys, values = (part[None, start:end] for part in stored)
        member = _of_member(options, index)
        parts.append(forward(query[index : index + 1], keys, values, **member))
    return torch.cat([out for out, _ in parts]), torch.cat([lse for _, lse in parts])


def _of_member(options: dict[str, Any], index: int) -> dict[str, Any]:
    slopes = options.get("alibi_slopes")
    return options if slopes is None else {**options, "alibi_slopes": slopes[index : index + 1]}


class _Blocked(torch.autograd.Function):  # type: ignore[misc] # torch has no types here
    """Attention over (batch, heads, sequence, dimension)."""

    @staticmethod
    def forward(ctx: Any, query: Any, key: Any, value: Any, plan: Plan) -> tuple[Any, Any]:
        """Goes over the keys once."""
        call = _Call(query, key, value, plan)
        shape = (*query.shape[:-1], value.shape[-1])
        total = call.q.new_zeros(call.q.shape[:-1])
        highest = torch.full_like(total, -torch.inf)
        out = call.q.new_zeros(*call.q.shape[:-1], value.shape[-1])
        for columns in call.blocks():
            scores, _ = call.scores(columns)
            peak = torch.maximum(highest, scores.amax(-1))
            # A row that has seen nothing yet has no maximum to subtract.
            base = peak.masked_fill(peak == -torch.inf, 0.0)
            weights = torch.exp(scores - base[..., None])
            shrink = torch.exp(highest - base)
            total = total * shrink + weights.sum(-1)
            out = out * shrink[..., None] + (weights * call.kept(columns)) @ call.v[..., columns, :]
            highest = peak
        empty = total == 0
        out = out / total.masked_fill(empty, 1.0)[..., None]
        lse = (highest + total.log()).masked_fill(empty, torch.inf).reshape(shape[:-1])
        result = out.reshape(shape).to(query.dtype)
        ctx.call = (plan, call.seed)
        ctx.save_for_backward(query, key, value, result, lse)
        ctx.mark_non_differentiable(lse)
        return result, lse

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: Any, grad: Any, _: Any) -> tuple[Any, Any, Any, None]:
        """Goes over the keys again."""
        query, key, value, out, lse = ctx.saved_tensors
        plan, seed = ctx.call
        call = _Call(query, key, value, plan, seed)
        grad = call.grouped(grad)
        lse = lse.reshape(call.q.shape[:-1])[..., None]
        share = (grad * call.grouped(out)).sum(-1, keepdim=True)
        dq, dk, dv = (torch.zeros_like(tensor) for tensor in (call.q, call.k, call.v))
        for columns in call.blocks():
            scores, slope = call.scores(columns)
            weights = torch.exp(scores - lse)
            kept = call.kept(columns)
            v = call.v[..., columns, :]
            dv[..., columns, :] = ((weights * kept).transpose(-1, -2) @ grad).sum(2, keepdim=True)
            ds = weights * ((grad @ v.transpose(-1, -2)) * kept - share) * slope * plan.scale
            dq += ds @ call.k[..., columns, :]
            dk[..., columns, :] = (ds.transpose(-1, -2) @ call.q).sum(2, keepdim=True)
        return (
            dq.reshape(query.shape).to(query.dtype),
            dk.reshape(key.shape).to(key.dtype),
            dv.reshape(value.shape).to(value.dtype),
            None,
        )


class _Call:
    """Tensors of one call, with query heads in groups that share a key head."""

    def __init__(self, query: Any, key: Any, value: Any, plan: Plan, seed: int = 0) -> None:
        work = torch.promote_types(query.dtype, torch.float32)
        self._split = (query.shape[0], key.shape[1], query.shape[1] // key.shape[1])
        self._work = work
        self.q = self.grouped(query)
        self.k, self.v = (tensor.to(work)[:, :, None] for tensor in (key, value))
        self._plan = plan
        self.seed = seed
        if plan.dropout_p and not seed:
            # From the device's generator: repeatable under manual_seed, and on with each call.
            self.seed = int(torch.randint(1, 1 << 62, (), device=query.device))

    def grouped(self, tensor: Any) -> Any:
        """Returns (B, H, ...) as (B, Hk, H / Hk, ...) in the dtype of the computation."""
        return tensor.to(self._work).reshape(*self._split, *tensor.shape[2:])

    def blocks(self) -> Iterator[slice]:
        """Yields the columns of each block."""
        keys = self.k.shape[-2]
        return (slice(start, min(start + BLOCK, keys)) for start in range(0, keys, BLOCK))

    def scores(self, columns: slice) -> tuple[Any, Any]:
        """Returns scores of a block, and their slope over the scaled products."""
        plan, slope = self._plan, 1.0
        scores = (self.q @ self.k[..., columns, :].transpose(-1, -2)) * plan.scale
        if plan.softcap:
            bent = torch.tanh(scores / plan.softcap)
            scores, slope = plan.softcap * bent, 1.0 - bent.square()
        queries, keys = self.q.shape[-2], self.k.shape[-2]
        place = torch.arange(queries, device=scores.device)[:, None] + (keys - queries)
        distance = torch.arange(columns.start, columns.stop, device=scores.device) - place
        if plan.alibi_slopes is not None:
            slopes = plan.alibi_slopes.reshape(*self._split, 1, 1)
            scores = scores - slopes * distance.abs()
        return scores.masked_fill(self._hidden(distance, columns), -torch.inf), slope

    def _hidden(self, distance: Any, columns: slice) -> Any:
        plan = self._plan
        left, right = plan.window
        hidden = torch.zeros_like(distance, dtype=torch.bool)
        if plan.causal or right >= 0:
            hidden |= distance > (0 if plan.causal else right)
        if left >= 0:
            hidden |= distance < -left
        if plan.mask is not None:
            batch, heads, group = self._split
            seen = plan.mask.expand(batch, heads * group, distance.shape[0], self.k.shape[-2])
            hidden = hidden | ~seen[..., columns].unflatten(1, (heads, group))
        return hidden

    def kept(self, columns: slice) -> Any:
        """Returns what dropout multiplies the probabilities of a block with."""
        p = self._plan.dropout_p
        if not p:
            return 1.0
        generator = torch.Generator(self.q.device).manual_seed(self.seed + columns.start)
        shape = (*self.q.shape[:-1], columns.stop - columns.start)
        drawn = torch.rand(shape, generator=generator, device=self.q.device)
        return (drawn >= p).to(self.q.dtype) / (1.0 - p)
