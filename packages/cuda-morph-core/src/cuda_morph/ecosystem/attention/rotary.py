"""Rotary position embedding: turning pairs of dimensions by an angle that grows with position."""

from __future__ import annotations

from typing import Any

import torch  # noqa: TID253 - loaded by the first call of attention only


def positions(shape: tuple[int, int], start: Any, device: Any) -> Any:
    """Returns positions (B, S) or (1, S) that count up from `start`.

    Args:
        shape: Batch and sequence length.
        start: A number, or an integer tensor (B).
        device: Where the result is needed.
    """
    count = torch.arange(shape[1], device=device)[None, :]
    if isinstance(start, torch.Tensor):
        return count + start.to(device=device, dtype=torch.long)[:, None]
    return count + int(start)


def packed_positions(total: int, ends: Any, start: Any) -> Any:
    """Returns positions (1, total) that begin anew with each packed sequence."""
    rows = torch.arange(total, device=ends.device)
    sequence = torch.searchsorted(ends[1:].long(), rows, right=True).clamp(max=ends.numel() - 2)
    count = rows - ends.long()[sequence]
    if isinstance(start, torch.Tensor):
        count = count + start.to(device=ends.device, dtype=torch.long)[sequence]
    else:
        count = count + int(start)
    return count[None, :]


def rotate(x: Any, cos: Any, sin: Any, where: Any, *, interleaved: bool) -> Any:
    """Turns the first dimensions of each head.

    Args:
        x: (B, S, H, D).
        cos: (longest, R / 2); R <= D dimensions are turned.
        sin: Likewise.
        where: Positions (B, S) or (1, S); behind the end of `cos` nothing is turned.
        interleaved: Pairs are neighbours (0, 1), (2, 3), else (0, R / 2), (1, R / 2 + 1).

    Returns:
        A new tensor of x's shape and dtype.
    """
    half = cos.shape[-1]
    inside = (where < cos.shape[0])[..., None, None]
    row = where.clamp(max=cos.shape[0] - 1)
    c = torch.where(inside, cos[row][:, :, None, :].float(), 1.0)
    s = torch.where(inside, sin[row][:, :, None, :].float(), 0.0)
    turned, rest = x[..., : 2 * half].float(), x[..., 2 * half :]
    if interleaved:
        a, b = turned[..., 0::2], turned[..., 1::2]
        both = torch.stack((a * c - b * s, a * s + b * c), dim=-1).flatten(-2)
    else:
        a, b = turned[..., :half], turned[..., half:]
        both = torch.cat((a * c - b * s, a * s + b * c), dim=-1)
    return torch.cat((both.to(x.dtype), rest), dim=-1)
