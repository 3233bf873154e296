"""flash_attn's semantics through ``torch_mlu_ops.flash_attention``, where it is installed.

The function takes packed sequences and returns the output; it has no gradients. Arguments are given
in the order and with the names that dlinfer and vllm-mlu use. What is not published is left out:
where a causal mask ends when there are more keys than queries, from where windows count, how query
heads share key heads.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch  # noqa: TID253 - imported by the first call of a kernel only

FEATURES = ("causal",)


def forward(query: Any, key: Any, value: Any, *, scale: float, causal: bool = False) -> Any:
    """Computes attention over (batch, sequence, heads, dimension).

    Args:
        query: (B, Sq, H, D).
        key: (B, Sk, H, D).
        value: (B, Sk, H, D).
        scale: Factor on the scores.
        causal: For as many queries as keys.

    Returns:
        Output (B, Sq, H, D).

    Raises:
        NotImplementedError: The package is not there, or not known to give exactly this.
    """
    batch, queries = query.shape[:2]
    keys = key.shape[1]
    ends = [
        torch.arange(0, (batch + 1) * length, length, dtype=torch.int32, device=query.device)
        for length in (queries, keys)
    ]
    out = varlen(
        *(tensor.flatten(0, 1) for tensor in (query, key, value)),
        cu_seqlens_q=ends[0],
        cu_seqlens_k=ends[0] if queries == keys else ends[1],
        max_seqlen_q=queries,
        max_seqlen_k=keys,
        scale=scale,
        causal=causal,
    )
    return out.unflatten(0, (batch, queries))


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
) -> Any:
    """Computes attention within packed sequences (total, heads, dimension).

    Raises:
        NotImplementedError: The package is not there, or not known to give exactly this.
    """
    if causal and cu_seqlens_q is not cu_seqlens_k:
        raise NotImplementedError("a causal mask that is no square")
    try:
        package = importlib.import_module("torch_mlu_ops")
    except ImportError as error:
        raise NotImplementedError(f"torch_mlu_ops cannot be imported: {error}") from error
    tensors = (query.contiguous(), key.contiguous(), value.contiguous())
    return package.flash_attention(
        *tensors,
        None,
        cu_seqlens_q,
        cu_seqlens_k,
        None,
        None,
        max_seqlen_q,
        max_seqlen_k,
        scale,
        causal,
        -1,
        -1,
        query.dtype,
        False,
    )
