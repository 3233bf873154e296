"""The attention functions of flash_attn 2.8, with its parameters and semantics.

Two things differ. Besides float16 and bfloat16, float32 and float64 are computed where the device
has them; and head dimensions have no limit. Programs written for flash_attn use neither.
"""

from __future__ import annotations

from typing import Any

import torch  # noqa: TID253 - the package imports torch as its original does

from cuda_morph.ecosystem.attention import Options, attend, attend_cache, attend_packed
from cuda_morph.ecosystem.attention.cache import Cache
from cuda_morph.ecosystem.attention.dense import attend_with_probabilities
from cuda_morph.ecosystem.attention.rotary import positions, rotate

_PAGE = 256
"""flash_attn's pages are multiples of this many positions."""


def flash_attn_func(
    q: Any,
    k: Any,
    v: Any,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Any = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """Attention of (B, Sq, H, D) over keys and values (B, Sk, Hk, D), where Hk divides H.

    Args:
        q: Queries.
        k: Keys.
        v: Values.
        dropout_p: Probability of dropping; 0 at inference.
        softmax_scale: Factor on the scores; ``None``: one over the root of D.
        causal: Query i sees keys j <= i + Sk - Sq.
        window_size: Keys seen to the left and right of that position; -1: all.
        softcap: Above 0, scores s become softcap * tanh(s / softcap).
        alibi_slopes: (H) or (B, H): slope * abs(i + Sk - Sq - j) is subtracted.
        deterministic: The gradient is the same bit by bit each time.
        return_attn_probs: Also return the logarithms and what dropout did.

    Returns:
        (B, Sq, H, D), zeros where no key is seen; with `return_attn_probs` also the logarithm of
        the sum of exponentials (B, H, Sq) and, with dropout, the probabilities (B, H, Sq, Sk),
        negative where dropped.

    Raises:
        RuntimeError: The tensors do not fit, with flash_attn's words.
    """
    _check(q, k, v, alibi_slopes)
    options = _options(
        q, softmax_scale, causal, window_size, softcap, alibi_slopes, dropout_p, deterministic,
        return_attn_probs,
    )  # fmt: skip
    if not return_attn_probs:
        return attend(q, k, v, options)[0]
    if dropout_p > 0:
        return attend_with_probabilities(q, k, v, options)
    return (*attend(q, k, v, options), q.new_empty(0))


def flash_attn_qkvpacked_func(
    qkv: Any,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Any = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """`flash_attn_func` of queries, keys and values stacked as (B, S, 3, H, D)."""
    q, k, v = qkv.unbind(2)
    return flash_attn_func(
        q, k, v, dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes,
        deterministic, return_attn_probs,
    )  # fmt: skip


def flash_attn_kvpacked_func(
    q: Any,
    kv: Any,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Any = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """`flash_attn_func` of keys and values stacked as (B, S, 2, Hk, D)."""
    k, v = kv.unbind(2)
    return flash_attn_func(
        q, k, v, dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes,
        deterministic, return_attn_probs,
    )  # fmt: skip


def flash_attn_varlen_func(
    q: Any,
    k: Any,
    v: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Any = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: Any = None,
) -> Any:
    """Attention within packed sequences, (T, H, D) over (Tk, Hk, D).

    Args:
        q: Queries of all sequences.
        k: Keys of all sequences; with `block_table`, pages (pages, page length, Hk, D).
        v: Values, likewise.
        cu_seqlens_q: int32 (B + 1), from 0: sequence b is in rows ``[b]`` to ``[b + 1]``.
        cu_seqlens_k: Likewise for keys.
        max_seqlen_q: Length of the longest sequence of queries.
        max_seqlen_k: Length of the longest sequence of keys.
        dropout_p: As in `flash_attn_func`, like the parameters that follow.
        softmax_scale: Factor on the scores.
        causal: Aligned at the last query and key of each sequence.
        window_size: Keys seen to the left and right.
        softcap: Cap of the scores.
        alibi_slopes: (H) or (B, H).
        deterministic: The gradient is the same bit by bit each time.
        return_attn_probs: Also return the logarithms (H, T) and what dropout did.
        block_table: int32 (B, pages per sequence): where the pages of a sequence are.

    Returns:
        (T, H, D), or a tuple as in `flash_attn_func`.
    """
    _check(q, k, v, alibi_slopes)
    for ends in (cu_seqlens_q, cu_seqlens_k):
        _require(ends.dtype == torch.int32, "cu_seqlens must have dtype int32")
    if block_table is not None:
        k, v = _pages_in_a_row(k, v, cu_seqlens_k, block_table)
    options = _options(
        q, softmax_scale, causal, window_size, softcap, alibi_slopes, dropout_p, deterministic,
        return_attn_probs,
    )  # fmt: skip
    ends, longest = (cu_seqlens_q, cu_seqlens_k), (int(max_seqlen_q), int(max_seqlen_k))
    if not return_attn_probs:
        return attend_packed(q, k, v, ends, longest, options)[0]
    if dropout_p > 0:
        return _packed_with_probabilities(q, k, v, ends, longest, options)
    return (*attend_packed(q, k, v, ends, longest, options), q.new_empty(0))


def flash_attn_varlen_qkvpacked_func(
    qkv: Any,
    cu_seqlens: Any,
    max_seqlen: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Any = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """`flash_attn_varlen_func` of queries, keys and values stacked as (T, 3, H, D)."""
    q, k, v = qkv.unbind(1)
    return flash_attn_varlen_func(
        q, k, v, cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, dropout_p, softmax_scale,
        causal, window_size, softcap, alibi_slopes, deterministic, return_attn_probs,
    )  # fmt: skip


def flash_attn_varlen_kvpacked_func(
    q: Any,
    kv: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Any = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """`flash_attn_varlen_func` of keys and values stacked as (Tk, 2, Hk, D)."""
    k, v = kv.unbind(1)
    return flash_attn_varlen_func(
        q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p,
        softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic,
        return_attn_probs,
    )  # fmt: skip


def flash_attn_with_kvcache(
    q: Any,
    k_cache: Any,
    v_cache: Any,
    k: Any = None,
    v: Any = None,
    rotary_cos: Any = None,
    rotary_sin: Any = None,
    cache_seqlens: Any = None,
    cache_batch_idx: Any = None,
    cache_leftpad: Any = None,
    block_table: Any = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    alibi_slopes: Any = None,
    num_splits: int = 0,
    return_softmax_lse: bool = False,
) -> Any:
    """Attention over a cache, after new keys and values were written into it; no gradients.

    Args:
        q: (B, Sq, H, D).
        k_cache: (rows, length, Hk, D), or pages (pages, page length, Hk, D); changed in place.
        v_cache: Likewise.
        k: (B, new, Hk, D): written at `cache_seqlens`.
        v: Likewise.
        rotary_cos: (longest, R / 2): new keys are turned at their position, queries too if there
            is a causal mask or a window, and else all at `cache_seqlens`.
        rotary_sin: Likewise.
        cache_seqlens: int or int32 (B): filled positions; ``None``: all.
        cache_batch_idx: int32 (B): the row of each sequence.
        cache_leftpad: int32 (B): the first position that counts.
        block_table: int32 (B, pages per sequence).
        softmax_scale: As in `flash_attn_func`, like the parameters that follow.
        causal: Aligned at the end of the cache.
        window_size: Keys seen to the left and right.
        softcap: Cap of the scores.
        rotary_interleaved: Pairs are neighbours, else halves.
        alibi_slopes: (H) or (B, H).
        num_splits: A hint; it changes nothing.
        return_softmax_lse: Also return the logarithms (B, H, Sq).

    Returns:
        (B, Sq, H, D), or a tuple of it and the logarithms.
    """
    del num_splits
    _check(q, k_cache, v_cache, alibi_slopes)
    cache = _cache(q, k_cache, v_cache, cache_seqlens, cache_batch_idx, cache_leftpad, block_table)
    table = None if rotary_cos is None else (rotary_cos, rotary_sin)
    _require(k is not None or table is None, "If rotary cos/sin are provided, new key / value "
             "to be appended to KV cache must also be provided")  # fmt: skip
    _require(k is None or cache_seqlens is not None, "If key is supplied, seqlens_k must also be "
             "passed in")  # fmt: skip
    local = causal or window_size[0] >= 0 or window_size[1] >= 0
    q, cache = _with_new_keys(q, (k, v), cache, table, rotary_interleaved, local)
    options = _options(
        q, softmax_scale, causal, window_size, softcap, alibi_slopes, 0.0, False,
        return_softmax_lse,
    )  # fmt: skip
    out, lse = attend_cache(q, cache, options)
    return (out, lse) if return_softmax_lse else out


def _options(
    q: Any,
    softmax_scale: float | None,
    causal: bool,
    window_size: tuple[int, int],
    softcap: float,
    alibi_slopes: Any,
    dropout_p: float,
    deterministic: bool,
    return_lse: bool,
) -> Options:
    return Options(
        scale=float(q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale),
        causal=bool(causal),
        window=(int(window_size[0]), int(window_size[1])),
        softcap=float(softcap),
        alibi_slopes=alibi_slopes,
        dropout_p=float(dropout_p),
        deterministic=bool(deterministic),
        return_lse=bool(return_lse),
    )


def _require(condition: object, message: str) -> None:
    if not condition:
        raise RuntimeError(message)


def _check(q: Any, k: Any, v: Any, alibi_slopes: Any) -> None:
    """Refuses what flash_attn refuses, except for wide dtypes."""
    _require(q.dtype.is_floating_point and q.dtype.itemsize > 1,
             "FlashAttention only support fp16 and bf16 data type")  # fmt: skip
    _require(k.dtype == q.dtype and v.dtype == q.dtype,
             "query, key and value must have the same dtype")  # fmt: skip
    _require(q.shape[-2] % max(k.shape[-2], 1) == 0,
             "Number of heads in key/value must divide number of heads in query")  # fmt: skip
    if alibi_slopes is not None:
        _require(alibi_slopes.dtype == torch.float32, "ALiBi slopes must have dtype fp32")


def _cache(
    q: Any,
    k_cache: Any,
    v_cache: Any,
    cache_seqlens: Any,
    cache_batch_idx: Any,
    cache_leftpad: Any,
    block_table: Any,
) -> Cache:
    length = k_cache.shape[1]
    if block_table is not None:
        _require(length % _PAGE == 0, f"Paged KV cache block size must be divisible by {_PAGE}")
        _require(cache_batch_idx is None, "Paged KVcache does not support cache_batch_idx")
        length *= block_table.shape[1]
    if cache_seqlens is None or isinstance(cache_seqlens, int):
        filled = length if cache_seqlens is None else cache_seqlens
        cache_seqlens = torch.full((q.shape[0],), filled, dtype=torch.int32, device=q.device)
    return Cache(
        keys=k_cache,
        values=v_cache,
        lengths=cache_seqlens,
        rows=cache_batch_idx,
        starts=cache_leftpad,
        block_table=block_table,
    )


def _with_new_keys(
    q: Any,
    new: tuple[Any, Any],
    cache: Cache,
    table: tuple[Any, Any] | None,
    interleaved: bool,
    local: bool,
) -> tuple[Any, Cache]:
    """Turns queries and new keys, and writes new keys and values into the cache.

    Args:
        q: Queries.
        new: New keys and values, or ``None`` twice.
        cache: The cache.
        table: Cosines and sines, or ``None``.
        interleaved: Pairs are neighbours.
        local: Queries are turned at their own positions, else all at the end of the cache.

    Returns:
        Queries and cache.
    """
    k, v = new
    if k is None:
        return q, cache
    with torch.no_grad():
        if table is not None:
            turn = _Turn(*table, interleaved)
            q, k = turn(q, cache.lengths, moving=local), turn(k, cache.lengths, moving=True)
        return q, cache.append(k, v)


class _Turn:
    """Turns queries or keys at the positions of a cache."""

    def __init__(self, cos: Any, sin: Any, interleaved: bool) -> None:
        self._table = (cos, sin)
        self._interleaved = interleaved

    def __call__(self, x: Any, start: Any, *, moving: bool) -> Any:
        where = positions((x.shape[0], x.shape[1]), start, x.device)
        if not moving:
            where = where[:, :1].expand_as(where)
        return rotate(x, *self._table, where, interleaved=self._interleaved)


def _pages_in_a_row(k: Any, v: Any, ends: Any, block_table: Any) -> tuple[Any, Any]:
    """Returns packed keys and values, copied from their pages."""
    page = k.shape[1]
    lengths = (ends[1:] - ends[:-1]).long()
    sequence = torch.repeat_interleave(torch.arange(len(lengths), device=k.device), lengths)
    position = torch.arange(len(sequence), device=k.device) - ends[:-1].long()[sequence]
    where = (block_table.long()[sequence, position // page], position % page)
    return k[where], v[where]


def _packed_with_probabilities(
    q: Any, k: Any, v: Any, ends: tuple[Any, Any], longest: tuple[int, int], options: Options
) -> tuple[Any, Any, Any]:
    """Attention of each packed sequence, with what dropout did as (B, H, longest, longest)."""
    outs, lses, seen = [], [], []
    q_ends, k_ends = (part.tolist() for part in ends)
    for index in range(len(q_ends) - 1):
        rows = slice(q_ends[index], q_ends[index + 1])
        columns = slice(k_ends[index], k_ends[index + 1])
        out, lse, drops = attend_with_probabilities(
            q[None, rows], k[None, columns], v[None, columns], options
        )
        outs.append(out[0])
        lses.append(lse[0])
        missing = (0, longest[1] - drops.shape[-1], 0, longest[0] - drops.shape[-2])
        seen.append(torch.nn.functional.pad(drops, missing))
    return torch.cat(outs), torch.cat(lses, dim=1), torch.cat(seen)
