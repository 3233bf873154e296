"""Rotary embedding of queries and keys."""

from __future__ import annotations

from typing import Any

import torch  # noqa: TID253 - the package imports torch as its original does

from ..ops.triton.rotary import apply_rotary  # noqa: TID252 - loaded under another name


def apply_rotary_emb(
    x: Any,
    cos: Any,
    sin: Any,
    interleaved: bool = False,
    inplace: bool = False,
    seqlen_offsets: Any = 0,
    cu_seqlens: Any = None,
    max_seqlen: int | None = None,
) -> Any:
    """Turns the first dimensions of each head by its position; see `apply_rotary`."""
    return apply_rotary(
        x,
        cos,
        sin,
        seqlen_offsets=seqlen_offsets,
        cu_seqlens=cu_seqlens,
        max_seqlen=max_seqlen,
        interleaved=interleaved,
        inplace=inplace,
    )


apply_rotary_emb_func = apply_rotary_emb


def apply_rotary_emb_torch(x: Any, cos: Any, sin: Any, interleaved: bool = False) -> Any:
    """Turns each head; cos and sin are (S, R / 2) or (B, S, R / 2), one row per position."""
    cos = torch.as_tensor(cos)[..., None, :]
    sin = torch.as_tensor(sin)[..., None, :]
    half = cos.shape[-1]
    turned, rest = x[..., : 2 * half], x[..., 2 * half :]
    if interleaved:
        a, b = turned[..., 0::2], turned[..., 1::2]
        both = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
    else:
        a, b = turned[..., :half], turned[..., half:]
        both = torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return torch.cat((both, rest), dim=-1)


def apply_rotary_emb_qkv_(
    qkv: Any,
    cos: Any,
    sin: Any,
    cos_k: Any = None,
    sin_k: Any = None,
    interleaved: bool = False,
    seqlen_offsets: Any = 0,
    num_heads_q: int | None = None,
) -> Any:
    """Turns queries and keys in place.

    Args:
        qkv: (B, S, 3, H, D), or (B, S, heads, D) with the query's heads first, then the key's and
            the value's.
        cos: (longest, R / 2).
        sin: Likewise.
        cos_k: For the keys; ``None``: as for the queries.
        sin_k: Likewise.
        interleaved: Pairs are neighbours, else halves.
        seqlen_offsets: Position of the first element: int, or (B).
        num_heads_q: How many heads are the query's; required for four dimensions.

    Returns:
        `qkv`.
    """
    if qkv.dim() == 5:  # noqa: PLR2004 - batch, sequence, three, heads, dimension
        q, k = qkv[:, :, 0], qkv[:, :, 1]
    else:
        if num_heads_q is None:
            raise AssertionError("num_heads_q must be given for a qkv of four dimensions")
        heads_k = (qkv.shape[2] - num_heads_q) // 2
        q, k = qkv[:, :, :num_heads_q], qkv[:, :, num_heads_q : num_heads_q + heads_k]
    more = {"interleaved": interleaved, "inplace": True, "seqlen_offsets": seqlen_offsets}
    apply_rotary_emb(q, cos, sin, **more)
    apply_rotary_emb(k, cos if cos_k is None else cos_k, sin if sin_k is None else sin_k, **more)
    return qkv


def apply_rotary_emb_kv_(
    kv: Any, cos: Any, sin: Any, interleaved: bool = False, seqlen_offsets: Any = 0
) -> Any:
    """Turns the keys of (B, S, 2, H, D) in place and returns the tensor."""
    apply_rotary_emb(
        kv[:, :, 0], cos, sin, interleaved, inplace=True, seqlen_offsets=seqlen_offsets
    )
    return kv


class RotaryEmbedding(torch.nn.Module):  # type: ignore[misc] # torch has no types here
    """Rotary embedding with tables that grow with the sequence.

    Args:
        dim: How many dimensions of a head are turned.
        base: Ratio of the slowest to the fastest turn.
        interleaved: Pairs are neighbours, else halves.
        scale_base: Not ``None``: also shrink with distance, as XPos does.
        device: Where the frequencies are.
    """

    def __init__(
        self,
        dim: int,
        base: float = 10000.0,
        interleaved: bool = False,
        scale_base: float | None = None,
        device: Any = None,
    ) -> None:
        super().__init__()
        self.dim, self.base = dim, float(base)
        self.interleaved, self.scale_base = interleaved, scale_base
        steps = torch.arange(0, dim, 2, device=device, dtype=torch.float32)
        self.register_buffer("inv_freq", self.base ** (-steps / dim), persistent=False)
        scale = None if scale_base is None else (steps + 0.4 * dim) / (1.4 * dim)
        self.register_buffer("scale", scale, persistent=False)
        self._tables: tuple[Any, Any, Any, Any] | None = None

    def _update_cos_sin_cache(self, seqlen: int, device: Any = None, dtype: Any = None) -> None:
        tables = self._tables
        if (
            tables is not None
            and tables[0].shape[0] >= seqlen
            and tables[0].device == device
            and tables[0].dtype == dtype
            and not (self.training and tables[0].is_inference())
        ):
            return
        # Angles grow with position and would lose digits in a narrow dtype.
        place = torch.arange(seqlen, device=device, dtype=torch.float32)
        steps = torch.arange(0, self.dim, 2, device=device, dtype=torch.float32)
        angle = place[:, None] * self.base ** (-steps / self.dim)
        cos, sin = torch.cos(angle), torch.sin(angle)
        if self.scale_base is None:
            self._tables = (cos.to(dtype), sin.to(dtype), None, None)
            return
        shrink = (steps + 0.4 * self.dim) / (1.4 * self.dim)
        power = shrink ** ((place - seqlen // 2) / self.scale_base)[:, None]
        pairs = (cos * power, sin * power, cos / power, sin / power)
        self._tables = tuple(table.to(dtype) for table in pairs)

    def forward(
        self,
        qkv: Any,
        kv: Any = None,
        seqlen_offset: Any = 0,
        max_seqlen: int | None = None,
        num_heads_q: int | None = None,
    ) -> Any:
        """Turns queries and keys in place.

        Args:
            qkv: (B, S, 3, H, D) or (B, S, heads, D) without `kv`, else queries (B, S, H, D).
            kv: (B, S, 2, Hk, D).
            seqlen_offset: Position of the first element: int, or (B).
            max_seqlen: Length of the tables at least.
            num_heads_q: How many heads of (B, S, heads, D) are the query's.

        Returns:
            `qkv`, or turned queries and `kv`.
        """
        longest = qkv.shape[1] + (seqlen_offset if isinstance(seqlen_offset, int) else 0)
        self._update_cos_sin_cache(max(longest, max_seqlen or 0), qkv.device, qkv.dtype)
        if self._tables is None:
            raise AssertionError("the tables were just made")
        cos, sin, cos_k, sin_k = self._tables
        if kv is None:
            return apply_rotary_emb_qkv_(
                qkv, cos, sin, cos_k, sin_k, self.interleaved, seqlen_offset, num_heads_q
            )
        q = apply_rotary_emb(
            qkv, cos, sin, self.interleaved, inplace=True, seqlen_offsets=seqlen_offset
        )
        tables = (cos, sin) if cos_k is None else (cos_k, sin_k)
        return q, apply_rotary_emb_kv_(kv, *tables, self.interleaved, seqlen_offset)
