"""flash_attn's semantics in the words of torch_npu's fused attention.

Every call carries the scale, because the operator's default is 1. Masks are inverted: true hides.
The kept share of dropout is given instead of the dropped one. Limits are given as a sparse mode
with a mask of 2048 x 2048 that stands for all sizes: mode 3 is a causal mask aligned at the bottom
right, mode 4 a band aligned there. Packed sequences are described by the ends of each, without
the zero at the beginning, as numbers on the host.

Sources: op-plugin's documentation of ``npu_fusion_attention`` and
``npu_fused_infer_attention_score``; signatures of torch_npu 2.13.0.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import torch  # noqa: TID253 - imported by the first call of a kernel only

from cuda_morph.adapter import adapter_module

UNLIMITED = 2147483647
"""The operators' own word for no limit."""
COMPRESSED = 2048
"""Side of the mask that stands for a causal mask or a band of any size."""
MAX_HEAD_DIM = 768
FEATURES = (
    "causal",
    "window",
    "alibi",
    "mask",
    "dropout",
    "lse",
    "gqa",
    "backward",
    "empty_rows",
)
"""There is no cap on scores, and nothing promises a deterministic gradient."""
MODE_FULL_MASK, MODE_CAUSAL, MODE_BAND = 1, 3, 4
SCALED_BEFORE_BIAS = 0
"""Type of a position bias that is added after scaling."""


def forward(
    query: Any,
    key: Any,
    value: Any,
    *,
    scale: float,
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    alibi_slopes: Any = None,
    mask: Any = None,
    dropout_p: float = 0.0,
    return_lse: bool = False,
) -> Any:
    """Computes attention over (batch, sequence, heads, dimension) with ``npu_fusion_attention``.

    Args:
        query: (B, Sq, H, D).
        key: (B, Sk, Hk, D).
        value: (B, Sk, Hk, Dv).
        scale: Factor on the scores.
        causal: Aligned at the bottom right.
        window: Keys to the left and right; -1: all.
        alibi_slopes: (B, H).
        mask: Boolean, true hides; (batch or 1, heads or 1, Sq, Sk) or fewer dimensions.
        dropout_p: Probability of dropping.
        return_lse: Also return the logarithms.

    Returns:
        Output (B, Sq, H, Dv), with `return_lse` a tuple of it and the logarithms (B, H, Sq).

    Raises:
        NotImplementedError: The operator cannot give exactly this.
    """
    queries, keys = query.shape[1], key.shape[1]
    right = 0 if causal else window[1]
    # Rows that see no key are left out of the call: zeros are what flash_attn gives for them.
    blind = min(queries, max(0, queries - keys - right)) if right >= 0 else 0
    seen = query[:, blind:] if blind else query
    limits = _limits(query.device, causal=causal, window=window)
    hidden = None
    if mask is not None:
        limits, hidden = _with_mask(mask, limits, (seen.shape[1], keys), blind)
    options: dict[str, Any] = {"scale": scale, "keep_prob": 1.0 - dropout_p, **limits}
    results = _fusion(seen, key, value, query.shape[2], "BSND", alibi_slopes, options)
    out = results[0] if hidden is None else results[0].masked_fill(hidden.transpose(1, 2), 0.0)
    out = torch.nn.functional.pad(out, (0, 0, 0, 0, blind, 0)) if blind else out
    if not return_lse:
        return out
    lse = _logarithms(results)
    lse = lse if hidden is None else lse.masked_fill(hidden.squeeze(-1), torch.inf)
    return out, torch.nn.functional.pad(lse, (blind, 0), value=torch.inf) if blind else lse


def varlen(
    query: Any,
    key: Any,
    value: Any,
    *,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    max_seqlen_q: int,
    max_seqlen_k: int,
    scale: float,
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    alibi_slopes: Any = None,
    dropout_p: float = 0.0,
    return_lse: bool = False,
) -> Any:
    """Computes attention within packed sequences (total, heads, dimension).

    Returns:
        Output (Tq, H, Dv), with `return_lse` a tuple of it and the logarithms (H, Tq).

    Raises:
        NotImplementedError: Some row sees no key, or there are biases: the operator's
            documentation does not say what it gives for these.
    """
    del max_seqlen_q, max_seqlen_k
    # Lists on the host: the operator asks for them, at the price of a wait for the device.
    query_ends = cu_seqlens_q.tolist()
    key_ends = query_ends if cu_seqlens_k is cu_seqlens_q else cu_seqlens_k.tolist()
    right = 0 if causal else window[1]
    for (q0, q1), (k0, k1) in zip(pairwise(query_ends), pairwise(key_ends), strict=True):
        # What the operator does with a row that sees nothing is not documented for all modes.
        if k1 == k0 or (right >= 0 and (q1 - q0) - (k1 - k0) > right):
            raise NotImplementedError("a row sees no key")
    if alibi_slopes is not None or query_ends[-1] != query.shape[0]:
        raise NotImplementedError("biases and trailing rows of packed sequences")
    options: dict[str, Any] = {
        "scale": scale,
        "keep_prob": 1.0 - dropout_p,
        "actual_seq_qlen": query_ends[1:],
        "actual_seq_kvlen": key_ends[1:],
        **_limits(query.device, causal=causal, window=window),
    }
    if return_lse:
        options["softmax_layout"] = "TND"
    results = _fusion(query, key, value, query.shape[1], "TND", None, options)
    return (results[0], _logarithms(results).transpose(0, 1)) if return_lse else results[0]


def kvcache(
    query: Any,
    key_cache: Any,
    value_cache: Any,
    *,
    cache_seqlens: Any,
    scale: float,
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    return_lse: bool = False,
    **others: Any,
) -> Any:
    """Computes one decoding step with ``npu_fused_infer_attention_score``.

    Returns:
        Output (B, 1, H, Dv), with `return_lse` a tuple of it and the logarithms (B, H, 1).

    Raises:
        NotImplementedError: Several queries at once, an empty cache, biases, or a wide dtype.
    """
    lengths = cache_seqlens.tolist()
    narrow = query.dtype in {torch.float16, torch.bfloat16}
    if others or causal or query.shape[1] != 1 or not narrow or min(lengths) == 0:
        raise NotImplementedError("more than one plain query per sequence")
    options: dict[str, Any] = {}
    if window[0] >= 0:
        place = torch.arange(key_cache.shape[1], device=query.device)
        first = cache_seqlens.to(query.device).long()[:, None] - 1 - window[0]
        options["atten_mask"] = (place[None, :] < first)[:, None, None, :]
    out, lse = adapter_module().npu_fused_infer_attention_score(
        query.contiguous(),
        key_cache.contiguous(),
        value_cache.contiguous(),
        num_heads=query.shape[2],
        num_key_value_heads=key_cache.shape[2],
        input_layout="BSND",
        scale=scale,
        actual_seq_lengths_kv=lengths,
        softmax_lse_flag=return_lse,
        **options,
    )
    return (out, lse.squeeze(-1)) if return_lse else out


def _fusion(
    query: Any,
    key: Any,
    value: Any,
    heads: int,
    layout: str,
    alibi_slopes: Any,
    options: dict[str, Any],
) -> Any:
    """Calls the training operator; the second version where a bias has to say its type."""
    module = adapter_module()
    tensors = (query.contiguous(), key.contiguous(), value.contiguous())
    if alibi_slopes is None:
        return module.npu_fusion_attention(*tensors, heads, layout, **options)
    if query.dtype != torch.float32:
        raise NotImplementedError("biases would be rounded to the dtype of the query")
    for old, new in (("pre_tockens", "pre_tokens"), ("next_tockens", "next_tokens")):
        if old in options:
            options[new] = options.pop(old)
    queries, keys = query.shape[1], key.shape[1]
    place = torch.arange(queries, device=query.device)[:, None] + (keys - queries)
    distance = (torch.arange(keys, device=query.device) - place).abs()
    bias = -alibi_slopes.to(query.dtype)[:, :, None, None] * distance
    return module.npu_fusion_attention_v2(
        *tensors, heads, layout, pse=bias, pse_type=SCALED_BEFORE_BIAS, **options
    )


def _limits(device: Any, *, causal: bool, window: tuple[int, int]) -> dict[str, Any]:
    """Returns the operator's arguments for a causal mask or a window."""
    left, right = window
    if left < 0 and causal:
        return {"atten_mask": _compressed(device), "sparse_mode": MODE_CAUSAL}
    if left < 0 and right < 0:
        return {}
    right = 0 if causal else right
    return {
        "atten_mask": _compressed(device),
        "sparse_mode": MODE_BAND,
        "pre_tockens": left if left >= 0 else UNLIMITED,
        "next_tockens": right if right >= 0 else UNLIMITED,
    }


def _with_mask(
    mask: Any, limits: dict[str, Any], shape: tuple[int, int], blind: int
) -> tuple[dict[str, Any], Any]:
    """Joins an explicit mask with the limits; rows that see nothing are computed as if they did.

    Returns:
        The operator's arguments, and where a row saw nothing: (B or 1, H or 1, Sq, 1).
    """
    queries, keys = shape
    mask = mask[(None,) * (4 - mask.dim())] if mask.dim() < 4 else mask  # noqa: PLR2004
    mask = mask.expand(*mask.shape[:2], queries + blind, keys)[:, :, blind:]
    if limits:
        place = torch.arange(queries, device=mask.device)[:, None] + (keys - queries)
        distance = torch.arange(keys, device=mask.device) - place
        right = limits.get("next_tockens", 0)
        left = limits.get("pre_tockens", UNLIMITED)
        mask = mask | (distance > right) | (distance < -left)
    hidden = mask.all(-1, keepdim=True)
    # The operator's shapes are (B, H), (B, 1) or (1, 1) before the square.
    if mask.shape[0] == 1 and mask.shape[1] > 1:
        raise NotImplementedError("a mask by head that is the same for the batch")
    return {"atten_mask": (mask & ~hidden).contiguous(), "sparse_mode": MODE_FULL_MASK}, hidden


def _logarithms(results: Any) -> Any:
    """Returns the logarithm of the sum of exponentials; the last dimension repeats each value."""
    return results[1][..., 0] + torch.log(results[2][..., 0])


@lru_cache(maxsize=8)
def _compressed(device: Any) -> Any:
    square = torch.ones(COMPRESSED, COMPRESSED, dtype=torch.bool, device=device)
    return torch.triu(square, diagonal=1)
