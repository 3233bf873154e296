"""Packed sequences and caches against the reference."""

from __future__ import annotations

import random

import pytest
import torch
from flash_attn import (
    flash_attn_varlen_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
    flash_attn_with_kvcache,
)

from cuda_morph_conformance.attention_grid import packed, packed_reference
from cuda_morph_conformance.attention_reference import Case, reference

LENGTHS = (
    ((5, 5), (3, 3), (8, 8)),
    ((5, 9), (1, 4), (2, 2)),
    ((4, 2), (3, 7), (6, 6)),
    ((0, 3), (4, 0), (2, 5)),
)
OPTIONS = (
    {},
    {"causal": True},
    {"window": (2, 1)},
    {"window": (1, 0), "causal": True, "softcap": 3.0},
    {"alibi": "heads", "causal": True},
    {"alibi": "batch"},
    {"scale": 0.5, "key_heads": 2},
    {"key_heads": 1, "causal": True},
)


def options(case, device):
    slopes = case.slopes()
    return {
        "softmax_scale": case.scale,
        "causal": case.causal,
        "window_size": case.window,
        "softcap": case.softcap,
        "alibi_slopes": None if slopes is None else slopes.to(device),
    }


def close(got, wanted, what, limit=2e-5):
    torch.testing.assert_close(
        got.detach().cpu().double(),
        wanted.detach(),
        rtol=limit,
        atol=limit,
        msg=lambda m: f"{what}: {m}",
    )


def check_packed_sequences_with_gradients(world):
    for lengths in LENGTHS:
        for option in OPTIONS:
            case = Case(batch=3, **option)
            q, k, v, q_ends, k_ends = packed(lengths, case)
            exact = [t.float().double().requires_grad_() for t in (q, k, v)]
            given = [t.detach().float().to(world.device).requires_grad_() for t in exact]
            out, lse, _ = flash_attn_varlen_func(
                *given,
                q_ends.to(world.device),
                k_ends.to(world.device),
                max(a for a, _ in lengths),
                max(b for _, b in lengths),
                return_attn_probs=True,
                **options(case, world.device),
            )
            wanted, wanted_lse = packed_reference(lengths, case, *exact)
            what = f"{lengths} {case.label}"
            close(out, wanted, what)
            close(lse, wanted_lse, what)
            seed = torch.randn(wanted.shape)
            out.backward(seed.to(world.device))
            wanted.backward(seed.double())
            for mine, theirs in zip(given, exact, strict=True):
                close(torch.zeros_like(mine) if mine.grad is None else mine.grad, theirs.grad, what)


def check_packed_forms_agree(world):
    q, k, v, ends, _ = packed(LENGTHS[0], Case(batch=3))
    q, k, v = (t.float().to(world.device) for t in (q, k, v))
    ends = ends.to(world.device)
    wanted = flash_attn_varlen_func(q, k, v, ends, ends, 8, 8, causal=True)
    one = flash_attn_varlen_qkvpacked_func(torch.stack([q, k, v], 1), ends, 8, causal=True)
    two = flash_attn_varlen_kvpacked_func(q, torch.stack([k, v], 1), ends, ends, 8, 8, causal=True)
    torch.testing.assert_close(one, wanted)
    torch.testing.assert_close(two, wanted)


def check_packed_sequences_with_pages(world):
    case = Case(batch=3, causal=True)
    lengths = LENGTHS[1]
    q, k, v, q_ends, k_ends = packed(lengths, case)
    wanted, _ = packed_reference(lengths, case, q, k, v)
    pages_k, pages_v = torch.zeros(6, 256, 4, 16), torch.zeros(6, 256, 4, 16)
    table = torch.tensor([[4], [0], [2]], dtype=torch.int32)
    for b in range(3):
        rows = slice(k_ends[b], k_ends[b + 1])
        count = int(k_ends[b + 1] - k_ends[b])
        pages_k[table[b, 0], :count] = k[rows].float()
        pages_v[table[b, 0], :count] = v[rows].float()
    move = lambda t: t.to(world.device)  # noqa: E731
    out = flash_attn_varlen_func(
        move(q.float()), move(pages_k), move(pages_v), move(q_ends), move(k_ends), 5, 9,
        causal=True, block_table=move(table),
    )  # fmt: skip
    close(out, wanted, "pages")


def turned(x, cos, sin, where, interleaved):
    """Rotary embedding by its definition, one pair at a time."""
    x = x.clone()
    half = cos.shape[1]
    for s, place in enumerate(where):
        for n in range(half):
            a, b = (2 * n, 2 * n + 1) if interleaved else (n, n + half)
            c, d = cos[place, n], sin[place, n]
            first, second = x[s, :, a].clone(), x[s, :, b].clone()
            x[s, :, a], x[s, :, b] = first * c - second * d, first * d + second * c
    return x


def cache_case(world, chance):  # noqa: PLR0915 - one random call with all its parts
    """One random call of flash_attn_with_kvcache, judged member by member."""
    batch, heads, key_heads, dim = 3, 4, chance.choice([1, 2, 4]), 16
    queries = chance.choice([1, 1, 3])
    paged = chance.random() < 0.4
    room = 512 if paged else 24
    lengths = [chance.randrange(1, 12) for _ in range(batch)]
    new = chance.choice([0, queries])
    rows = None if paged or chance.random() < 0.6 else chance.sample(range(5), batch)
    pads = None if chance.random() < 0.7 else [chance.randrange(0, n) for n in lengths]
    case = Case(
        batch=batch, heads=heads, key_heads=key_heads, dim=dim,
        causal=chance.random() < 0.5, window=chance.choice([(-1, -1), (4, 0), (3, 2)]),
        softcap=chance.choice([0.0, 3.0]), alibi=chance.choice(["", "heads", "batch"]),
    )  # fmt: skip
    rotary = new and chance.random() < 0.6
    interleaved = chance.random() < 0.5
    q = torch.randn(batch, queries, heads, dim)
    logical_k = torch.randn(batch, room, key_heads, dim)
    logical_v = torch.randn(batch, room, key_heads, dim)
    k_new, v_new = (torch.randn(batch, new, key_heads, dim) for _ in range(2))
    angle = torch.rand(64, 4) * 6
    cos, sin = angle.cos(), angle.sin()
    table = None
    if paged:
        table = torch.tensor(chance.sample(range(8), 6), dtype=torch.int32).reshape(3, 2)
        k_cache, v_cache = torch.zeros(8, 256, key_heads, dim), torch.zeros(8, 256, key_heads, dim)
        for b in range(batch):
            for p in range(2):
                k_cache[table[b, p]] = logical_k[b, p * 256 : p * 256 + 256]
                v_cache[table[b, p]] = logical_v[b, p * 256 : p * 256 + 256]
    else:
        k_cache, v_cache = (torch.randn(5, room, key_heads, dim) for _ in range(2))
        for b in range(batch):
            k_cache[rows[b] if rows else b] = logical_k[b]
            v_cache[rows[b] if rows else b] = logical_v[b]
        if rows is None:
            k_cache, v_cache = k_cache[:batch], v_cache[:batch]

    def move(t, dtype=None):
        if t is None:
            return None
        return (torch.tensor(t, dtype=torch.int32) if isinstance(t, list) else t).to(world.device)

    dk, dv = move(k_cache), move(v_cache)
    out, lse = flash_attn_with_kvcache(
        move(q), dk, dv,
        k=move(k_new) if new else None, v=move(v_new) if new else None,
        rotary_cos=move(cos) if rotary else None, rotary_sin=move(sin) if rotary else None,
        cache_seqlens=move(lengths), cache_batch_idx=move(rows), cache_leftpad=move(pads),
        block_table=move(table), rotary_interleaved=interleaved, return_softmax_lse=True,
        **options(case, world.device),
    )  # fmt: skip
    local = case.causal or case.window != (-1, -1)
    for b in range(batch):
        start, end = (pads[b] if pads else 0), lengths[b]
        q_b, k_b, v_b = q[b], logical_k[b].clone(), logical_v[b].clone()
        added = k_new[b]
        if rotary:
            where = range(end, end + queries) if local else [end] * queries
            q_b = turned(q_b, cos, sin, where, interleaved)
            added = turned(added, cos, sin, range(end, end + new), interleaved)
        k_b[end : end + new], v_b[end : end + new] = added, v_new[b]
        slopes = case.slopes()
        wanted, wanted_lse = reference(
            case, q_b[None].double(), k_b[None, start : end + new].double(),
            v_b[None, start : end + new].double(),
            slopes=slopes[b : b + 1] if case.alibi == "batch" else slopes,
        )  # fmt: skip
        close(out[b : b + 1], wanted, f"member {b} of {case.label}")
        close(lse[b : b + 1], wanted_lse, f"logarithms of member {b} of {case.label}")
        for cache, logical in ((dk, k_b), (dv, v_b)):
            if paged:
                stored = torch.cat([cache[int(table[b, p])] for p in range(2)])
            else:
                stored = cache[rows[b] if rows else b]
            torch.testing.assert_close(stored.cpu(), logical)


def check_caches(world):
    chance = random.Random(7)
    for _ in range(60):
        cache_case(world, chance)


def check_cache_length_as_a_number(world):
    q, k, v = (torch.randn(2, n, 4, 16) for n in (1, 9, 9))
    wanted, _ = reference(Case(), q.double(), k[:, :6].double(), v[:, :6].double())
    dq, dk, dv = (t.to(world.device) for t in (q, k, v))
    close(flash_attn_with_kvcache(dq, dk, dv, cache_seqlens=6), wanted, "six")
    wanted, _ = reference(Case(), q.double(), k.double(), v.double())
    close(flash_attn_with_kvcache(dq, dk, dv), wanted, "all")


def check_new_keys_need_a_length(world):
    q, k, v, a, b = (torch.randn(2, n, 4, 16, device=world.device) for n in (1, 9, 9, 1, 1))
    with pytest.raises(RuntimeError, match="seqlens_k"):
        flash_attn_with_kvcache(q, k, v, a, b)
