"""Rotary embedding."""

from __future__ import annotations

from typing import Any

from cuda_morph.ecosystem.attention.rotary import packed_positions, positions, rotate


def apply_rotary(
    x: Any,
    cos: Any,
    sin: Any,
    seqlen_offsets: Any = 0,
    cu_seqlens: Any = None,
    max_seqlen: int | None = None,
    interleaved: bool = False,
    inplace: bool = False,
    conjugate: bool = False,
) -> Any:
    """Turns the first dimensions of each head by its position.

    Args:
        x: (B, S, H, D), or packed (T, H, D) with `cu_seqlens`.
        cos: (longest, R / 2), in x's dtype.
        sin: Likewise.
        seqlen_offsets: Position of the first element: int, or (B).
        cu_seqlens: int32 (B + 1) of packed sequences.
        max_seqlen: Length of the longest packed sequence.
        interleaved: Pairs are neighbours, else halves.
        inplace: Write the result into `x`.
        conjugate: Turn back.

    Returns:
        The turned tensor, `x` itself if `inplace`.
    """
    _check(x, cos, sin, cu_seqlens, max_seqlen)
    packed = x[None] if cu_seqlens is not None else x
    if cu_seqlens is not None:
        where = packed_positions(x.shape[0], cu_seqlens, seqlen_offsets)
    else:
        where = positions((x.shape[0], x.shape[1]), seqlen_offsets, x.device)
    turned = rotate(packed, cos, -sin if conjugate else sin, where, interleaved=interleaved)
    turned = turned[0] if cu_seqlens is not None else turned
    return x.copy_(turned) if inplace else turned


def _check(x: Any, cos: Any, sin: Any, cu_seqlens: Any, max_seqlen: int | None) -> None:
    """Refuses what flash_attn refuses, with its kind of error."""
    if cu_seqlens is not None and max_seqlen is None:
        raise AssertionError("If cu_seqlens is passed in, then max_seqlen must be passed")
    if sin.shape != cos.shape or sin.dtype != cos.dtype:
        raise AssertionError("cos and sin must have the same shape and dtype")
    if 2 * cos.shape[1] > x.shape[-1]:
        raise AssertionError("rotary_dim must be <= headdim")
    if x.dtype != cos.dtype:
        raise AssertionError(
            f"Input and cos/sin must have the same dtype, got {x.dtype} and {cos.dtype}"
        )
