"""Attention in double precision, row by row, from the published formulas.

It shares no code with what it judges: every query row is computed by itself from the definition,
on the CPU in float64. Sources: Vaswani et al. 2017 (scaled dot product), Press et al. 2021
(ALiBi), Beltagy et al. 2020 (sliding window), Gemma 2 report 2024 (score cap), and flash_attn
2.8's documentation for alignment and for rows that see no key.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

CAP = 3.0
"""The score cap that cases use: low enough to matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Shapes and options of one call."""

    batch: int = 2
    queries: int = 5
    keys: int = 5
    heads: int = 4
    key_heads: int = 4
    dim: int = 16
    causal: bool = False
    window: tuple[int, int] = (-1, -1)
    softcap: float = 0.0
    alibi: str = ""
    """Empty, ``heads`` for slopes by head, ``batch`` for slopes by batch and head."""
    scale: float | None = None

    @property
    def label(self) -> str:
        """What the case asks for, in a few words."""
        sizes = f"{self.batch}x{self.queries}x{self.keys}"
        heads = f"h{self.heads}/{self.key_heads} d{self.dim}"
        asked = [
            "causal" * self.causal,
            f"window={self.window}" * (self.window != (-1, -1)),
            f"softcap={self.softcap}" * (self.softcap > 0),
            f"alibi by {self.alibi}" * bool(self.alibi),
            f"scale={self.scale}" * (self.scale is not None),
        ]
        return " ".join([sizes, heads, *filter(None, asked)])

    def slopes(self) -> Any:
        """Returns the ALiBi slopes as a float32 tensor on the CPU, or ``None``."""
        import torch

        if not self.alibi:
            return None
        shape = (self.heads,) if self.alibi == "heads" else (self.batch, self.heads)
        count = torch.arange(1, 1 + math.prod(shape))
        return (0.1 * count).reshape(shape).float()

    def tensors(self, seed: int = 0) -> tuple[Any, Any, Any]:
        """Returns queries, keys and values in float64 on the CPU, (batch, sequence, heads, dim)."""
        import torch

        generator = torch.Generator().manual_seed(seed)
        shapes = (
            (self.batch, self.queries, self.heads, self.dim),
            (self.batch, self.keys, self.key_heads, self.dim),
            (self.batch, self.keys, self.key_heads, self.dim),
        )
        return tuple(
            torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes
        )


def reference(
    case: Case, query: Any, key: Any, value: Any, *, mask: Any = None, slopes: Any = None
) -> tuple[Any, Any]:
    """Computes attention row by row.

    Args:
        case: The options; its shapes are not read, so that parts of a batch can be given.
        query: (B, Sq, H, D), float64.
        key: (B, Sk, Hk, D), float64.
        value: (B, Sk, Hk, Dv), float64.
        mask: Boolean (B, H, Sq, Sk), true keeps, or ``None``.
        slopes: ALiBi slopes (H) or (B, H) instead of those of the case.

    Returns:
        Output (B, Sq, H, Dv) and the logarithm of the sum of exponentials (B, H, Sq).
    """
    import torch

    slopes = case.slopes() if slopes is None else slopes
    outs, lses = [], []
    for b in range(query.shape[0]):
        for h in range(query.shape[2]):
            kv_head = h * key.shape[2] // query.shape[2]
            slope = 0.0
            if slopes is not None:
                slope = float(slopes[h] if slopes.dim() == 1 else slopes[b, h])
            for i in range(query.shape[1]):
                out, lse = _row(
                    case,
                    query[b, i, h],
                    key[b, :, kv_head],
                    value[b, :, kv_head],
                    i + key.shape[1] - query.shape[1],
                    slope,
                    None if mask is None else mask[b, h, i],
                )
                outs.append(out)
                lses.append(lse)
    batch, queries, heads, _ = query.shape
    out = torch.stack(outs).reshape(batch, heads, queries, value.shape[-1]).transpose(1, 2)
    return out, torch.stack(lses).reshape(batch, heads, queries)


def _row(
    case: Case, query: Any, key: Any, value: Any, place: int, slope: float, mask: Any
) -> tuple[Any, Any]:
    """Returns output and logarithm of one query, whose own position among the keys is `place`."""
    import torch

    left, right = case.window
    seen = []
    for j in range(key.shape[0]):
        hidden = (
            (case.causal and j > place)
            or (left >= 0 and j < place - left)
            or (right >= 0 and not case.causal and j > place + right)
            or (mask is not None and not bool(mask[j]))
        )
        if not hidden:
            seen.append(j)
    if not seen:
        # Part of the graph, so that gradients exist and are zero.
        nothing = (query.sum() + value.sum()) * 0.0
        return torch.zeros(value.shape[-1], dtype=torch.float64) + nothing, nothing + torch.inf
    scale = case.scale if case.scale is not None else query.shape[0] ** -0.5
    scores = (key[seen] @ query) * scale
    if case.softcap > 0:
        scores = case.softcap * torch.tanh(scores / case.softcap)
    distance = torch.tensor([abs(place - j) for j in seen], dtype=torch.float64)
    scores = scores - slope * distance
    highest = scores.max().detach()
    weights = torch.exp(scores - highest)
    total = weights.sum()
    return (weights / total) @ value[seen], highest + torch.log(total)
