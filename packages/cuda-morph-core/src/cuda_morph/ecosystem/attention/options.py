"""What a call of attention asks for, in the terms of flash_attn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cuda_morph.frozen_record import frozen_record

UNLIMITED = -1


@frozen_record
class Options:
    """Options of one call. The defaults ask for plain attention."""

    scale: float
    """Factor on the scores; flash_attn's default is one over the root of the head dimension."""
    causal: bool = False
    """Query i sees the keys up to i + keys - queries."""
    window: tuple[int, int] = (UNLIMITED, UNLIMITED)
    """Keys seen to the left and to the right of that position, both inclusive; -1: all."""
    softcap: float = 0.0
    """c > 0: scores s become c * tanh(s / c), before biases and masks."""
    alibi_slopes: Any = None
    """Tensor (heads) or (batch, heads): slope * distance is subtracted from the scores."""
    mask: Any = None
    """Boolean tensor, broadcastable to (batch, heads, queries, keys); true keeps."""
    dropout_p: float = 0.0
    deterministic: bool = False
    return_lse: bool = False

    def normalised(self, queries: int, keys: int) -> Options:
        """Returns the same request with every limit that does nothing left out.

        Args:
            queries: Number of query positions; for packed sequences, of the longest.
            keys: Number of key positions.

        Returns:
            Options whose `window` is -1 where it hides nothing; a window that ends at the query's
            own position is written as `causal`.
        """
        left, right = self.window
        if self.causal:
            right = 0
        left = UNLIMITED if left < 0 or left >= keys - 1 else left
        right = UNLIMITED if right < 0 or right >= queries - 1 else right
        if left < 0 and right == 0:
            return replace(self, causal=True, window=(UNLIMITED, UNLIMITED))
        return replace(self, causal=right == 0, window=(left, right))

    @property
    def bounds(self) -> tuple[int | None, int | None]:
        """How far a query sees to the left and right of its position; ``None``: all."""
        left, right = self.window
        right = 0 if self.causal else right
        return (None if left < 0 else left, None if right < 0 else right)

    @property
    def windowed(self) -> bool:
        """Whether there is a limit besides the causal one."""
        return self.window != (UNLIMITED, UNLIMITED)

    def has_empty_rows(self, queries: int, keys: int) -> bool:
        """Returns whether some query sees no key, masks and padding aside."""
        _, right = self.bounds
        return keys == 0 or (right is not None and keys - queries + right < 0)
