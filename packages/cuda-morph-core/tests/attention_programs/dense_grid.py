"""flash_attn_func against the reference: every case, with and without logarithms."""

from __future__ import annotations

import torch
from flash_attn import flash_attn_func

from cuda_morph_conformance.attention_grid import difference, grid

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def call(q, k, v, case, **more):
    slopes = case.slopes()
    return flash_attn_func(
        q,
        k,
        v,
        softmax_scale=case.scale,
        causal=case.causal,
        window_size=case.window,
        softcap=case.softcap,
        alibi_slopes=None if slopes is None else slopes.to(q.device),
        **more,
    )


def with_logarithms(q, k, v, case):
    return call(q, k, v, case, return_attn_probs=True)[:2]


def output_only(q, k, v, case):
    return call(q, k, v, case), None


def failures(world, attention, dtype_of):
    return [
        f"{case.label}: {text}"
        for index, case in enumerate(grid())
        if (text := difference(attention, case, device=world.device, dtype=dtype_of(index)))
    ]


def check_single_precision_with_logarithms(world):
    assert failures(world, with_logarithms, lambda _: torch.float32) == []


def check_narrow_dtypes_with_output_only(world):
    assert failures(world, output_only, lambda index: DTYPES[index % 3]) == []
