"""Attention over sequences of different length, packed one behind the other."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch  # noqa: TID253 - loaded by the first call of attention only

from cuda_morph.ecosystem.attention import kernels
from cuda_morph.ecosystem.attention.dense import attend
from cuda_morph.ecosystem.attention.options import Options  # noqa: TC001 - read by users
from cuda_morph.ecosystem.attention.visibility import slopes_by_batch


def attend_packed(
    query: Any,
    key: Any,
    value: Any,
    ends: tuple[Any, Any],
    longest: tuple[int, int],
    options: Options,
) -> tuple[Any, Any]:
    """Computes attention within each of several packed sequences.

    Args:
        query: (Tq, H, D).
        key: (Tk, Hk, D), where Hk divides H.
        value: (Tk, Hk, Dv).
        ends: Integer tensors (B + 1), for queries and keys: sequence b is in the rows from
            ``ends[b]`` to ``ends[b + 1]``.
        longest: Length of the longest sequence of queries and of keys.
        options: What to compute; a mask is not possible here.

    Returns:
        Output (Tq, H, Dv) and, if asked for, the logarithms (H, Tq).
    """
    batch = ends[0].numel() - 1
    options = options.normalised(*longest)
    if options.alibi_slopes is not None:
        slopes = slopes_by_batch(options.alibi_slopes, batch)
        options = replace(options, alibi_slopes=slopes)
    same = ends[0] is ends[1]
    with torch.autocast(query.device.type, enabled=False):
        answer = kernels.first_answer(
            "varlen",
            kernels.need(query, key, value, options, *(() if same else ("empty_rows",))),
            lambda kernel, varlen: varlen(
                query,
                key,
                value,
                cu_seqlens_q=ends[0],
                cu_seqlens_k=ends[1],
                max_seqlen_q=longest[0],
                max_seqlen_k=longest[1],
                **kernels.arguments(kernel, options),
            ),
        )
    if answer is not None:
        out, lse = answer if isinstance(answer, (tuple, list)) else (answer, None)
        return out, lse if options.return_lse else None
    return _one_by_one(query, key, value, ends, options)


def _one_by_one(
    query: Any, key: Any, value: Any, ends: tuple[Any, Any], options: Options
) -> tuple[Any, Any]:
    query_ends = ends[0].tolist()
    key_ends = query_ends if ends[1] is ends[0] else ends[1].tolist()
    outs, lses = [], []
    spans = zip(pairwise(query_ends), pairwise(key_ends), strict=True)
    for index, ((q0, q1), (k0, k1)) in enumerate(spans):
        mine = options
        if options.alibi_slopes is not None:
            mine = replace(options, alibi_slopes=options.alibi_slopes[index : index + 1])
        out, lse = attend(query[None, q0:q1], key[None, k0:k1], value[None, k0:k1], mine)
        outs.append(out[0])
        lses.append(lse)
    out = torch.cat(outs) if outs else query.new_zeros(0, query.shape[1], value.shape[-1])
    # Rows behind the last sequence belong to none.
    rest = query.shape[0] - out.shape[0]
    if rest:
        out = torch.cat([out, out.new_zeros(rest, *out.shape[1:])])
    if not options.return_lse:
        return out, None
    lse = torch.cat([part[0] for part in lses], dim=1)
    return out, torch.nn.functional.pad(lse, (0, rest), value=torch.inf) if rest else lse
