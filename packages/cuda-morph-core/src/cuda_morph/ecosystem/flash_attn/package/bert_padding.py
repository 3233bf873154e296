"""Taking padding out of a batch and putting it back, as flash_attn.bert_padding does."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator  # noqa: TC003 - read by typing tools
from typing import Any

import torch  # noqa: TID253 - the package imports torch as its original does

_WITHOUT_USED = 4
"""What `unpad_input` returned before the fifth value, the used lengths, was added."""


def index_first_axis(input: Any, indices: Any) -> Any:  # noqa: A002 - flash_attn's parameter
    """Returns the rows of a tensor at some indices."""
    return input[indices]


def index_put_first_axis(values: Any, indices: Any, first_axis_dim: int) -> Any:
    """Returns a tensor of `first_axis_dim` rows, zero except for `values` at `indices`."""
    empty = values.new_zeros(first_axis_dim, *values.shape[1:])
    return empty.index_put((indices,), values)


def index_first_axis_residual(input: Any, indices: Any) -> tuple[Any, Any]:  # noqa: A002
    """Returns the rows of a tensor at some indices, and the tensor."""
    return input[indices], input


class _Unpadded(tuple[Any, ...]):
    """Five values; four for code that was written when there were four.

    flash_attn 2.7 added the used lengths at the end. Programs name the values in one assignment,
    so the number they expect is in the instruction that asks for them.
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        frame = sys._getframe(1)
        code, at = frame.f_code.co_code, frame.f_lasti
        unpacks = code[at] == dis.opmap["UNPACK_SEQUENCE"]
        few = unpacks and code[at + 1] == _WITHOUT_USED
        return iter(self[:_WITHOUT_USED] if few else self[:])


def unpad_input(
    hidden_states: Any, attention_mask: Any, unused_mask: Any = None
) -> tuple[Any, ...]:
    """Takes the padded positions out of a batch.

    Args:
        hidden_states: (B, S, ...).
        attention_mask: (B, S), true or 1 for positions that count.
        unused_mask: (B, S), true or 1 for positions that are kept but not used.

    Returns:
        Kept rows (T, ...); their indices in the flattened batch; int32 (B + 1) where sequences
        begin and end; length of the longest; used positions of each sequence (B). Code that
        assigns the result to four names gets the first four, as before flash_attn 2.7.
    """
    kept = attention_mask if unused_mask is None else attention_mask + unused_mask
    lengths = kept.sum(-1, dtype=torch.int32)
    used = attention_mask.sum(-1, dtype=torch.int32)
    indices = torch.nonzero(kept.flatten(), as_tuple=False).flatten()
    return _Unpadded(
        (
            hidden_states.flatten(0, 1)[indices],
            indices,
            _ends(lengths),
            int(lengths.max()),
            used,
        )
    )


def unpad_input_for_concatenated_sequences(
    hidden_states: Any, attention_mask_in_length: Any
) -> tuple[Any, Any, Any, int]:
    """Takes padding out of a batch whose rows hold several sequences each.

    Args:
        hidden_states: (B, S, ...).
        attention_mask_in_length: int (B, S): the lengths of a row's sequences, then zeros.

    Returns:
        Kept rows (T, ...); their indices; int32 ends of the sequences; length of the longest.
    """
    filled = attention_mask_in_length.sum(-1, keepdim=True)
    place = torch.arange(attention_mask_in_length.shape[-1], device=filled.device)
    indices = torch.nonzero((place < filled).flatten(), as_tuple=False).flatten()
    flat = attention_mask_in_length.flatten()
    lengths = flat[flat != 0].to(torch.int32)
    rows = hidden_states.flatten(0, 1)[indices]
    return rows, indices, _ends(lengths), int(lengths.max())


def pad_input(hidden_states: Any, indices: Any, batch: int, seqlen: int) -> Any:
    """Puts rows back where `unpad_input` took them; the rest is zero.

    Args:
        hidden_states: (T, ...).
        indices: Their places in the flattened batch.
        batch: Number of sequences.
        seqlen: Length with padding.

    Returns:
        (batch, seqlen, ...).
    """
    flat = index_put_first_axis(hidden_states, indices, batch * seqlen)
    return flat.unflatten(0, (batch, seqlen))


def _ends(lengths: Any) -> Any:
    ends = torch.cumsum(lengths, dim=0, dtype=torch.int32)
    return torch.nn.functional.pad(ends, (1, 0))
