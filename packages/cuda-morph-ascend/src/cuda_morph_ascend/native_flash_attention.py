"""``flash_attn_npu``, where it is installed: flash_attn's own functions, made for this card.

Source: MinghuasLab/flash-attention-npu, version 0.4.2. It has flash_attn's parameters and refuses
dropout, biases, logarithms, head dimensions above 256 and dtypes other than float16 and bfloat16;
importing it on other chips raises RuntimeError.
"""

from __future__ import annotations

import importlib
from typing import Any

FEATURES = ("causal", "window", "softcap", "gqa", "backward")
"""What it is documented to do. What a row without keys gives is not, so that is left out."""


def forward(
    query: Any,
    key: Any,
    value: Any,
    *,
    scale: float,
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
) -> Any:
    """Computes attention over (batch, sequence, heads, dimension).

    Raises:
        NotImplementedError: The package is not there, or not for this chip.
    """
    return _package().flash_attn_func(
        query,
        key,
        value,
        softmax_scale=scale,
        causal=causal,
        window_size=window,
        softcap=softcap,
    )


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
    softcap: float = 0.0,
) -> Any:
    """Computes attention within packed sequences (total, heads, dimension).

    Raises:
        NotImplementedError: The package is not there, or not for this chip.
    """
    return _package().flash_attn_varlen_func(
        query,
        key,
        value,
        cu_seqlens_q,
        cu_seqlens_k,
        max_seqlen_q,
        max_seqlen_k,
        softmax_scale=scale,
        causal=causal,
        window_size=window,
        softcap=softcap,
    )


def _package() -> Any:
    try:
        return importlib.import_module("flash_attn_npu")
    except (ImportError, RuntimeError) as error:
        raise NotImplementedError(f"flash_attn_npu cannot be used: {error}") from error
