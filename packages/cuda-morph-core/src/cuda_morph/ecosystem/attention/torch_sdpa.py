"""PyTorch's own attention, for what it gives exactly.

The vendors' adapters put their fused kernel behind it, so it is tried after the plugin's kernels
and before attention from elementary operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded by the first call of attention only

from cuda_morph.ecosystem.attention.visibility import visible

if TYPE_CHECKING:
    from cuda_morph.ecosystem.attention.options import Options


def covers(options: Options, *, training: bool) -> bool:
    """Returns whether PyTorch's attention gives exactly what is asked for.

    It has no cap and returns no logarithms. Biases would have to be rounded to the dtype of the
    query, and nothing promises that its gradient is deterministic.
    """
    return not (
        options.softcap
        or options.return_lse
        or options.alibi_slopes is not None
        or (options.deterministic and training)
    )


def attend(query: Any, key: Any, value: Any, options: Options) -> Any:
    """Computes attention over (batch, sequence, heads, dimension).

    Args:
        query: (B, Sq, H, D).
        key: (B, Sk, Hk, D), where Hk divides H.
        value: (B, Sk, Hk, Dv).
        options: Something that `covers` accepts.

    Returns:
        Output (B, Sq, H, Dv).
    """
    queries, keys = query.shape[1], key.shape[1]
    # PyTorch aligns a causal mask at the top left; only for squares it is the same.
    square = options.causal and queries == keys and not options.windowed and options.mask is None
    seen = None if square else visible(options, queries, keys, query.device)
    empty = None
    if seen is not None and (options.mask is not None or options.has_empty_rows(queries, keys)):
        # Rows without a key see all of them instead, and are cleared: no NaN, and no gradient.
        empty = ~seen.any(-1, keepdim=True)
        seen = seen | empty
    out = torch.nn.functional.scaled_dot_product_attention(
        query.transpose(1, 2),
        key.transpose(1, 2),
        value.transpose(1, 2),
        attn_mask=seen,
        dropout_p=options.dropout_p,
        is_causal=square,
        scale=options.scale,
        enable_gqa=query.shape[2] != key.shape[2],
    )
    if empty is not None:
        out = out.masked_fill(empty, 0.0)
    return out.transpose(1, 2)
