"""torch_npu's fused attention operators on elementary ones, with the vendor's conventions.

The simulated adapter offers them under their own names. They are written from the published
documentation and know nothing of flash_attn, so a wrong translation gives wrong numbers here as it
would on a card: the scale is 1 unless given, masks hide where true, limits need the compressed
mask, and what the documentation forbids is refused. A row that is hidden wholly gives the average
of the values, except in mode 3, where the operator is documented to notice.

Sources: op-plugin's documentation of each operator; signatures of torch_npu 2.13.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - built when a simulated adapter is, with torch loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_INT_MAX = 2147483647
_COMPRESSED = 2048
_MAX_HEADS, _MAX_DIM = 256, 768
_REPEATS = 8
"""The last dimension of the softmax statistics holds each value this often."""
_TRAINING = (torch.float16, torch.bfloat16, torch.float32)
_INFERENCE = (torch.float16, torch.bfloat16)


def functions() -> Mapping[str, Callable[..., object]]:
    """Returns the operators by their name below ``torch_npu``."""
    return {
        "npu_fusion_attention": npu_fusion_attention,
        "npu_fusion_attention_v2": npu_fusion_attention_v2,
        "npu_prompt_flash_attention": npu_prompt_flash_attention,
        "npu_incre_flash_attention": npu_incre_flash_attention,
        "npu_fused_infer_attention_score": npu_fused_infer_attention_score,
    }


def npu_fusion_attention(
    query: Any,
    key: Any,
    value: Any,
    head_num: int,
    input_layout: str,
    pse: Any = None,
    padding_mask: Any = None,
    atten_mask: Any = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = _INT_MAX,
    next_tockens: int = _INT_MAX,
    inner_precise: int = 0,
    prefix: Any = None,
    actual_seq_qlen: Sequence[int] | None = None,
    actual_seq_kvlen: Sequence[int] | None = None,
    sparse_mode: int = 0,
    gen_mask_parallel: bool = True,
    sync: bool = False,
    softmax_layout: str = "",
    sink: Any = None,
    dropout_mask: Any = None,
    seed: int = 0,
    offset: int = 0,
) -> tuple[Any, ...]:
    """The training operator: output, maxima, sums, reserved, seed, offset, length of the mask."""
    del inner_precise, gen_mask_parallel, sync
    _refuse(padding_mask is not None, "padding_mask is not supported")
    _refuse(
        any(given is not None for given in (prefix, sink, dropout_mask)),
        "prefix, sink and dropout_mask are not simulated",
    )
    band = (sparse_mode, pre_tockens, next_tockens)
    how = _How(atten_mask, band, scale, keep_prob, pse, bias_scaled=True)
    ends = (actual_seq_qlen, actual_seq_kvlen)
    results = _train(query, key, value, head_num, input_layout, how, ends, softmax_layout)
    return (*results, seed, offset, 0)


def npu_fusion_attention_v2(
    query: Any,
    key: Any,
    value: Any,
    head_num: int,
    input_layout: str,
    *,
    pse: Any = None,
    padding_mask: Any = None,
    atten_mask: Any = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tokens: int = _INT_MAX,
    next_tokens: int = _INT_MAX,
    actual_seq_qlen: Sequence[int] | None = None,
    actual_seq_kvlen: Sequence[int] | None = None,
    sparse_mode: int = 0,
    pse_type: int = 1,
    softmax_layout: str = "",
) -> tuple[Any, ...]:
    """The training operator with a type for the bias: 1 is added before scaling, others after."""
    _refuse(padding_mask is not None, "padding_mask is not supported")
    _refuse(pse_type not in {0, 1}, "pse_type 2 and 3 are not simulated")
    band = (sparse_mode, pre_tokens, next_tokens)
    how = _How(atten_mask, band, scale, keep_prob, pse, bias_scaled=pse_type == 1)
    ends = (actual_seq_qlen, actual_seq_kvlen)
    results = _train(query, key, value, head_num, input_layout, how, ends, softmax_layout)
    return (*results, 0, 0, 0)


def npu_prompt_flash_attention(
    query: Any,
    key: Any,
    value: Any,
    *,
    padding_mask: Any = None,
    atten_mask: Any = None,
    actual_seq_lengths: Sequence[int] | None = None,
    actual_seq_lengths_kv: Sequence[int] | None = None,
    num_heads: int = 1,
    scale_value: float = 1.0,
    pre_tokens: int = _INT_MAX,
    next_tokens: int = 0,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    sparse_mode: int = 0,
) -> Any:
    """Inference over a whole prompt."""
    _refuse(padding_mask is not None, "padding_mask is not supported")
    how = _How(atten_mask, (sparse_mode, pre_tokens, next_tokens), scale_value)
    heads = (num_heads, num_key_value_heads or num_heads)
    lengths = (actual_seq_lengths, actual_seq_lengths_kv)
    return _infer(query, key, value, heads, input_layout, how, lengths)[0]


def npu_incre_flash_attention(
    query: Any,
    key: Any,
    value: Any,
    *,
    padding_mask: Any = None,
    atten_mask: Any = None,
    actual_seq_lengths: Sequence[int] | None = None,
    num_heads: int = 1,
    scale_value: float = 1.0,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    inner_precise: int = 1,
) -> Any:
    """Inference with one query per sequence; `actual_seq_lengths` are those of the keys."""
    del inner_precise
    _refuse(padding_mask is not None, "padding_mask is not supported")
    heads = (num_heads, num_key_value_heads or num_heads)
    how = _How(atten_mask, (1 if atten_mask is not None else 0, _INT_MAX, _INT_MAX), scale_value)
    out, _ = _infer(query, key, value, heads, input_layout, how, (None, actual_seq_lengths))
    _refuse(_sequence(query, input_layout) != 1, "the query must have length 1")
    return out


def npu_fused_infer_attention_score(
    query: Any,
    key: Any,
    value: Any,
    *,
    atten_mask: Any = None,
    actual_seq_lengths: Sequence[int] | None = None,
    actual_seq_lengths_kv: Sequence[int] | None = None,
    num_heads: int = 1,
    scale: float = 1.0,
    pre_tokens: int = _INT_MAX,
    next_tokens: int = _INT_MAX,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    sparse_mode: int = 0,
    inner_precise: int = 0,
    softmax_lse_flag: bool = False,
) -> tuple[Any, Any]:
    """Inference of both kinds; limits do nothing for one query per sequence."""
    del inner_precise
    single = _sequence(query, input_layout) == 1
    mode = (1 if atten_mask is not None else 0) if single else sparse_mode
    band = (mode, _INT_MAX, _INT_MAX) if single else (mode, pre_tokens, next_tokens)
    heads = (num_heads, num_key_value_heads or num_heads)
    lengths = (actual_seq_lengths, actual_seq_lengths_kv)
    how = _How(atten_mask, band, scale)
    out, lse = _infer(query, key, value, heads, input_layout, how, lengths)
    return out, lse if softmax_lse_flag else torch.zeros(1, device=query.device)


class _How:
    """What is computed besides products."""

    def __init__(
        self,
        mask: Any,
        band: tuple[int, int, int],
        scale: float,
        keep_prob: float = 1.0,
        pse: Any = None,
        *,
        bias_scaled: bool = True,
    ) -> None:
        self.mask, self.band, self.scale = mask, band, float(scale)
        self.keep_prob, self.pse, self.bias_scaled = keep_prob, pse, bias_scaled
        _refuse(not 0 < keep_prob <= 1, "keep_prob must be in (0, 1]")

    def hidden(self, queries: int, keys: int, device: Any) -> Any:
        """Returns what is hidden, broadcastable to (B, N, Sq, Skv), or ``None``."""
        if self.mask is None:
            return None
        mode, before, after = self.band
        _refuse(self.mask.dtype not in {torch.bool, torch.uint8}, "atten_mask: bool or uint8")
        column = torch.arange(keys, device=device)[None, :]
        row = torch.arange(queries, device=device)[:, None]
        if mode in {0, 1}:
            _refuse(tuple(self.mask.shape[-2:]) != (queries, keys), "atten_mask must be complete")
            hidden = self.mask.bool()
            away = column - row
            return hidden | (away > after) | (away < -before) if mode == 0 else hidden
        _refuse(mode not in {2, 3, 4}, f"sparse_mode {mode} is not simulated")
        self._check_compressed()
        if mode == 2:  # noqa: PLR2004 - the vendor's number
            return column > row
        away = column - (row + keys - queries)
        return away > 0 if mode == 3 else (away > after) | (away < -before)  # noqa: PLR2004

    def _check_compressed(self) -> None:
        wanted = (_COMPRESSED, _COMPRESSED)
        _refuse(tuple(self.mask.shape) != wanted, "atten_mask must be 2048 x 2048 in this mode")
        corner = self.mask[:64, :64].bool()
        above = torch.triu(torch.ones_like(corner), diagonal=1)
        _refuse(not torch.equal(corner, above), "atten_mask must be true above the diagonal")

    def attend(self, query: Any, key: Any, value: Any) -> tuple[Any, Any, Any]:
        """Returns output, maxima and sums of (B, N, S, D); keys may have fewer heads."""
        groups = query.shape[1] // key.shape[1]
        k, v = (part.float().repeat_interleave(groups, 1) for part in (key, value))
        scores = query.float() @ k.transpose(-1, -2)
        bias = 0.0 if self.pse is None else self.pse.float()
        scores = (scores + bias) * self.scale if self.bias_scaled else scores * self.scale + bias
        queries, keys = scores.shape[-2:]
        hidden = self.hidden(queries, keys, query.device)
        noticed = None
        if hidden is not None:
            scores = scores.masked_fill(hidden, -1e30)
            noticed = hidden.all(-1, keepdim=True) if self.band[0] == 3 else None  # noqa: PLR2004
        highest = scores.amax(-1, keepdim=True).detach()
        weights = torch.exp(scores - highest)
        total = weights.sum(-1, keepdim=True)
        share = weights / total
        if self.keep_prob < 1:
            share = share * (torch.rand_like(share) < self.keep_prob) / self.keep_prob
        out = share @ v
        out = out if noticed is None else out.masked_fill(noticed, 0.0)
        return out.to(query.dtype), highest, total.detach()


def _train(
    query: Any,
    key: Any,
    value: Any,
    head_num: int,
    layout: str,
    how: _How,
    ends: tuple[Sequence[int] | None, Sequence[int] | None],
    softmax_layout: str,
) -> tuple[Any, Any, Any, Any]:
    _check(query, key, value, _TRAINING)
    _refuse(how.pse is not None and how.pse.dtype != query.dtype, "pse must have query's dtype")
    reserved = torch.zeros(1, device=query.device)
    if layout == "TND":
        _refuse(how.pse is not None, "pse of packed sequences is not simulated")
        parts = _packed(query, key, value, head_num, how, ends)
        out = torch.cat([part.transpose(0, 1) for part, _, _ in parts])
        stats = [torch.cat([part[n] for part in parts], dim=1) for n in (1, 2)]
        stats = [part.transpose(0, 1) if softmax_layout == "TND" else part for part in stats]
        return out, *(part.expand(*part.shape[:-1], _REPEATS) for part in stats), reserved
    _refuse(ends != (None, None), "actual_seq_qlen and actual_seq_kvlen belong to TND")
    _refuse(softmax_layout != "", "softmax_layout belongs to TND")
    heads = key.shape[_HEADS_AT[layout]] if layout in _HEADS_AT else 0
    heads = heads or key.shape[-1] * head_num // query.shape[-1]
    q = _to_bnsd(query, layout, head_num)
    k, v = (_to_bnsd(part, layout, heads) for part in (key, value))
    _check_heads(q, k, head_num)
    out, highest, total = how.attend(q, k, v)
    stats = [part.expand(*part.shape[:-1], _REPEATS) for part in (highest, total)]
    return _from_bnsd(out, layout), *stats, reserved


def _packed(
    query: Any,
    key: Any,
    value: Any,
    head_num: int,
    how: _How,
    ends: tuple[Sequence[int] | None, Sequence[int] | None],
) -> list[tuple[Any, Any, Any]]:
    """Returns output, maxima and sums of each packed sequence, as (N, S, ...)."""
    for part, rows in zip(ends, (query, key), strict=True):
        _refuse(
            not isinstance(part, (list, tuple)) or not all(isinstance(end, int) for end in part),
            "TND needs actual_seq_qlen and actual_seq_kvlen, numbers on the host",
        )
        _refuse([*part] != sorted(part), "the ends of sequences must not decrease")  # type: ignore[misc, arg-type]
        _refuse(part[-1] != rows.shape[0], "the last end must be the length")  # type: ignore[index]
    _check_heads(query.transpose(0, 1)[None], key.transpose(0, 1)[None], head_num)
    parts = []
    q0 = k0 = 0
    for q1, k1 in zip(*ends, strict=True):  # type: ignore[arg-type]
        pieces = (query[q0:q1], key[k0:k1], value[k0:k1])
        if q1 > q0:
            parts.append([r[0] for r in how.attend(*(p.transpose(0, 1)[None] for p in pieces))])
        q0, k0 = q1, k1
    return parts  # type: ignore[return-value]


def _infer(
    query: Any,
    key: Any,
    value: Any,
    heads: tuple[int, int],
    layout: str,
    how: _How,
    lengths: tuple[Sequence[int] | None, Sequence[int] | None],
) -> tuple[Any, Any]:
    """Returns output and logarithms (B, N, S, 1); positions behind a length do not exist."""
    _check(query, key, value, _INFERENCE)
    given, _, answered = layout.partition("_")
    q = _to_bnsd(query, given, heads[0])
    k, v = (_to_bnsd(part, given, heads[1]) for part in (key, value))
    _check_heads(q, k, heads[0])
    _refuse(k.shape[1] != heads[1], "num_key_value_heads is not the number of key heads")
    out = q.new_zeros(*q.shape[:-1], v.shape[-1])
    lse = torch.full((*q.shape[:-1], 1), torch.inf, device=q.device)
    for b in range(q.shape[0]):
        rows, columns = (
            part.shape[2] if ends is None else ends[b if len(ends) > 1 else 0]
            for part, ends in zip((q, k), lengths, strict=True)
        )
        mine = _How(_mask_of(how.mask, b, rows, columns, how.band[0]), how.band, how.scale)
        one, highest, total = mine.attend(
            q[b : b + 1, :, :rows], k[b : b + 1, :, :columns], v[b : b + 1, :, :columns]
        )
        out[b, :, :rows] = one[0]
        lse[b, :, :rows] = (highest + total.log())[0]
    return _from_bnsd(out, answered or given), lse


def _mask_of(mask: Any, member: int, rows: int, columns: int, mode: int) -> Any:
    if mask is None or mode > 1:
        return mask
    if mask.dim() > 2:  # noqa: PLR2004 - a batch before the square
        mask = mask[member if mask.shape[0] > 1 else 0]
    return mask[..., :rows, :columns]


_HEADS_AT = {"BSND": 2, "BNSD": 1}


def _sequence(query: Any, layout: str) -> int:
    return int(query.shape[2 if layout.startswith("BNSD") else 1])


def _to_bnsd(tensor: Any, layout: str, heads: int) -> Any:
    if layout == "BNSD":
        return tensor
    if layout == "BSND":
        return tensor.transpose(1, 2)
    if layout == "BSH":
        return tensor.unflatten(-1, (heads, -1)).transpose(1, 2)
    _refuse(layout != "SBH", f"input_layout {layout} is not known")
    return tensor.unflatten(-1, (heads, -1)).permute(1, 2, 0, 3)


def _from_bnsd(tensor: Any, layout: str) -> Any:
    if layout == "BNSD":
        return tensor
    if layout == "BSND":
        return tensor.transpose(1, 2)
    if layout == "BSH":
        return tensor.transpose(1, 2).flatten(2)
    return tensor.permute(2, 0, 1, 3).flatten(2)


def _check(query: Any, key: Any, value: Any, dtypes: tuple[Any, ...]) -> None:
    _refuse(query.dtype not in dtypes, f"dtype {query.dtype} is not supported")
    same = query.dtype == key.dtype == value.dtype
    _refuse(not same, "query, key and value must have the same dtype")
    _refuse(
        query.shape[-1] > _MAX_DIM and query.dim() != 3,  # noqa: PLR2004 - BSH has no head dimension
        "the head dimension is 768 at most",
    )


def _check_heads(query: Any, key: Any, head_num: int) -> None:
    _refuse(query.shape[1] != head_num, "head_num is not the number of query heads")
    _refuse(head_num > _MAX_HEADS, "there are at most 256 heads")
    _refuse(head_num % key.shape[1] != 0, "query heads must be a multiple of key heads")


def _refuse(condition: object, message: str) -> None:
    if condition:
        raise RuntimeError(f"ERR01002 OPS invalid value: {message} (simulated)")
