"""Attention from elementary operators: exact for every option, and slow.

It holds all scores at once. Every other implementation is preferred where it gives the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded by the first call of attention only

from cuda_morph.ecosystem.attention.visibility import offsets, slopes_by_batch, visible

if TYPE_CHECKING:
    from cuda_morph.ecosystem.attention.options import Options


def attend(query: Any, key: Any, value: Any, options: Options) -> tuple[Any, Any, Any]:
    """Computes attention over (batch, sequence, heads, dimension).

    Args:
        query: (B, Sq, H, D).
        key: (B, Sk, Hk, D), where Hk divides H.
        value: (B, Sk, Hk, Dv).
        options: What to compute; `keys` must not be 0.

    Returns:
        Output (B, Sq, H, Dv); logarithm of the sum of exponentials (B, H, Sq), infinite where no
        key is seen; probabilities (B, H, Sq, Sk) after dropout, negative where dropped.
    """
    work = torch.promote_types(query.dtype, torch.float32)
    groups = query.shape[2] // key.shape[2]
    q = query.to(work).transpose(1, 2)
    k = key.to(work).transpose(1, 2).repeat_interleave(groups, 1)
    v = value.to(work).transpose(1, 2).repeat_interleave(groups, 1)
    scores = _scores(q, k, options)
    seen = visible(options, q.shape[2], k.shape[2], query.device)
    if seen is None:
        empty = None
    else:
        seen = seen.expand(scores.shape)
        empty = ~seen.any(-1, keepdim=True)
        # A row of minus infinities has no gradient; its result is replaced below.
        scores = scores.masked_fill(~seen, -torch.inf).masked_fill(empty, 0.0)
    lse = torch.logsumexp(scores, -1, keepdim=True)
    probabilities = torch.exp(scores - lse)
    if empty is not None:
        probabilities = probabilities.masked_fill(empty, 0.0)
        lse = lse.masked_fill(empty, torch.inf)
    kept, signed = _drop(probabilities, options.dropout_p)
    out = (kept @ v).transpose(1, 2).to(query.dtype)
    return out, lse.squeeze(-1), signed


def _scores(q: Any, k: Any, options: Options) -> Any:
    scores = (q @ k.transpose(-1, -2)) * options.scale
    if options.softcap > 0:
        scores = options.softcap * torch.tanh(scores / options.softcap)
    if options.alibi_slopes is not None:
        slopes = slopes_by_batch(options.alibi_slopes, q.shape[0]).to(scores.dtype)
        distance = offsets(q.shape[2], k.shape[2], q.device).abs()
        scores = scores - slopes[:, :, None, None] * distance
    return scores


def _drop(probabilities: Any, p: float) -> tuple[Any, Any]:
    """Returns probabilities after dropout, and before it with dropped ones negative."""
    if p <= 0:
        return probabilities, probabilities
    kept = torch.rand_like(probabilities) >= p
    return probabilities * kept / (1 - p), torch.where(kept, probabilities, -probabilities)
