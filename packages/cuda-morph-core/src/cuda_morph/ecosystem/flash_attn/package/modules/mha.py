"""Attention as modules."""

from __future__ import annotations

from typing import Any

import torch  # noqa: TID253 - the package imports torch as its original does

from ..flash_attn_interface import (  # noqa: TID252 - loaded under another name
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
)


class _FlashAttention(torch.nn.Module):  # type: ignore[misc] # torch has no types here
    def __init__(
        self,
        causal: bool = False,
        softmax_scale: float | None = None,
        attention_dropout: float = 0.0,
        window_size: tuple[int, int] = (-1, -1),
        alibi_slopes: Any = None,
        deterministic: bool = False,
    ) -> None:
        super().__init__()
        self.causal, self.softmax_scale = causal, softmax_scale
        self.drop = torch.nn.Dropout(attention_dropout)
        self.register_buffer("alibi_slopes", alibi_slopes, persistent=False)
        self.window_size, self.deterministic = window_size, deterministic

    def _options(self, causal: bool | None) -> dict[str, Any]:
        return {
            "dropout_p": self.drop.p if self.training else 0.0,
            "softmax_scale": self.softmax_scale,
            "causal": self.causal if causal is None else causal,
            "alibi_slopes": self.alibi_slopes,
            "window_size": self.window_size,
            "deterministic": self.deterministic,
        }


class FlashSelfAttention(_FlashAttention):
    """Attention of a sequence over itself."""

    def forward(
        self,
        qkv: Any,
        causal: bool | None = None,
        cu_seqlens: Any = None,
        max_seqlen: int | None = None,
    ) -> Any:
        """Returns attention of (B, S, 3, H, D), or of packed (T, 3, H, D) with `cu_seqlens`."""
        options = self._options(causal)
        if cu_seqlens is not None:
            return flash_attn_varlen_qkvpacked_func(
                qkv, cu_seqlens, int(max_seqlen or 0), **options
            )
        return flash_attn_qkvpacked_func(qkv, **options)


class FlashCrossAttention(_FlashAttention):
    """Attention of a sequence over another one."""

    def forward(
        self,
        q: Any,
        kv: Any,
        causal: bool | None = None,
        cu_seqlens: Any = None,
        max_seqlen: int | None = None,
        cu_seqlens_k: Any = None,
        max_seqlen_k: int | None = None,
    ) -> Any:
        """Returns attention of (B, Sq, H, D) over (B, Sk, 2, Hk, D), or of packed sequences."""
        options = self._options(causal)
        if cu_seqlens is not None:
            return flash_attn_varlen_kvpacked_func(
                q, kv, cu_seqlens, cu_seqlens_k, int(max_seqlen or 0), int(max_seqlen_k or 0),
                **options,
            )  # fmt: skip
        return flash_attn_kvpacked_func(q, kv, **options)
