"""Decoding: writing new keys and values into a cache, and attention over the cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch  # noqa: TID253 - loaded by the first call of attention only

from cuda_morph.ecosystem.attention import kernels
from cuda_morph.ecosystem.attention.dense import attend
from cuda_morph.ecosystem.attention.options import Options  # noqa: TC001 - read by users
from cuda_morph.ecosystem.attention.visibility import slopes_by_batch
from cuda_morph.frozen_record import frozen_record


@frozen_record
class Cache:
    """A cache of keys and values, in rows or in pages."""

    keys: Any
    """(rows, length, Hk, D), or (pages, page length, Hk, D) with a block table."""
    values: Any
    lengths: Any
    """Integer tensor (B): how many positions of the cache are filled."""
    rows: Any = None
    """Integer tensor (B): the row of each sequence; ``None``: its own number."""
    starts: Any = None
    """Integer tensor (B): the first position that counts; ``None``: 0."""
    block_table: Any = None
    """Integer tensor (B, pages per sequence): where the pages of a sequence are."""

    def append(self, key: Any, value: Any) -> Cache:
        """Writes new positions behind the filled ones, in place.

        Args:
            key: (B, new, Hk, D).
            value: (B, new, Hk, Dv).

        Returns:
            The same cache with the lengths that it has now.
        """
        batch, new = key.shape[:2]
        device = self.keys.device
        lengths = self.lengths.to(device=device, dtype=torch.long)
        positions = lengths[:, None] + torch.arange(new, device=device)
        if self.block_table is None:
            rows = torch.arange(batch, device=device) if self.rows is None else self.rows.long()
            index = (rows[:, None].expand_as(positions), positions)
        else:
            page = self.keys.shape[1]
            index = (self.block_table.long().gather(1, positions // page), positions % page)
        self.keys.index_put_(index, key.to(self.keys.dtype))
        self.values.index_put_(index, value.to(self.values.dtype))
        return replace(self, lengths=(lengths + new).to(self.lengths.dtype))

    def sequence(self, index: int, start: int, end: int) -> tuple[Any, Any]:
        """Returns keys and values of one sequence, as (1, end - start, Hk, D)."""
        if self.block_table is not None:
            pages = self.block_table[index].long()
            pages = pages[: -(-end // self.keys.shape[1])]
            return (
                self.keys[pages].flatten(0, 1)[None, start:end],
                self.values[pages].flatten(0, 1)[None, start:end],
            )
        row = index if self.rows is None else int(self.rows[index])
        return self.keys[row : row + 1, start:end], self.values[row : row + 1, start:end]


def attend_cache(query: Any, cache: Cache, options: Options) -> tuple[Any, Any]:
    """Computes attention of new queries over a cache; without gradients.

    Args:
        query: (B, Sq, H, D), the last positions of each sequence.
        cache: The cache; its lengths count the positions of the queries if they are in it.
        options: What to compute.

    Returns:
        Output (B, Sq, H, Dv) and, if asked for, the logarithms (B, H, Sq).
    """
    length = cache.keys.shape[1]
    if cache.block_table is not None:
        length *= cache.block_table.shape[1]
    normal = options.normalised(query.shape[1], length)
    if normal.alibi_slopes is not None:
        slopes = slopes_by_batch(normal.alibi_slopes, query.shape[0])
        normal = replace(normal, alibi_slopes=slopes)
    with torch.no_grad():
        answer = _from_kernel(query, cache, normal)
        return answer if answer is not None else _one_by_one(query, cache, normal)


def _from_kernel(query: Any, cache: Cache, options: Options) -> tuple[Any, Any] | None:
    extra = ["empty_rows"]
    extra += ["paged"] if cache.block_table is not None else []
    extra += ["cache_rows"] if cache.rows is not None else []
    extra += ["cache_starts"] if cache.starts is not None else []
    where = {
        "block_table": cache.block_table,
        "cache_rows": cache.rows,
        "cache_starts": cache.starts,
    }
    with torch.autocast(query.device.type, enabled=False):
        answer = kernels.first_answer(
            "kvcache",
            kernels.need(query, cache.keys, cache.values, options, *extra),
            lambda kernel, kvcache: kvcache(
                query,
                cache.keys,
                cache.values,
                cache_seqlens=cache.lengths,
                **{name: value for name, value in where.items() if value is not None},
                **kernels.arguments(kernel, options),
            ),
        )
    if answer is None:
        return None
    out, lse = answer if isinstance(answer, (tuple, list)) else (answer, None)
    return out, lse if options.return_lse else None


def _one_by_one(query: Any, cache: Cache, options: Options) -> tuple[Any, Any]:
    lengths = cache.lengths.tolist()
    starts = [0] * len(lengths) if cache.starts is None else cache.starts.tolist()
    whole = cache.block_table is None and cache.rows is None
    if whole and len({*lengths}) == 1 and len({*starts}) == 1:
        part = slice(starts[0], lengths[0])
        return attend(query, cache.keys[:, part], cache.values[:, part], options)
    outs, lses = [], []
    for index, (start, end) in enumerate(zip(starts, lengths, strict=True)):
        mine = options
        if options.alibi_slopes is not None:
            mine = replace(options, alibi_slopes=options.alibi_slopes[index : index + 1])
        key, value = cache.sequence(index, start, end)
        out, lse = attend(query[index : index + 1], key, value, mine)
        outs.append(out)
        lses.append(lse)
    return torch.cat(outs), torch.cat(lses) if options.return_lse else None
