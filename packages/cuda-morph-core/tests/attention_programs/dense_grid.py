"""flash_attn_func against the reference: every case, with and without logarithms."""

from __future__ import annotations

import torch
from flash_attn import flash_attn_func
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from cuda_morph_conformance.attention_grid import difference, grid
from cuda_morph_conformance.attention_reference import Case

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


LENGTH, SIDE = some.integers(1, 12), some.integers(-1, 6)
CASES = some.builds(
    lambda groups, key_heads, **rest: Case(heads=groups * key_heads, key_heads=key_heads, **rest),
    groups=some.integers(1, 3),
    key_heads=some.integers(1, 3),
    batch=some.integers(1, 3),
    queries=LENGTH,
    keys=LENGTH,
    dim=some.sampled_from([8, 16, 24]),
    causal=some.booleans(),
    window=some.tuples(SIDE, SIDE),
    softcap=some.sampled_from([0.0, 0.0, 1.5, 30.0]),
    alibi=some.sampled_from(["", "", "heads", "batch"]),
    scale=some.sampled_from([None, 0.05, 1.0, 2.0]),
)


def check_random_cases(world):
    @settings(
        max_examples=300, deadline=None, derandomize=True, suppress_health_check=[*HealthCheck]
    )
    @given(CASES, some.booleans())
    def judged(case, logarithms):
        attention = with_logarithms if logarithms else output_only
        problem = difference(attention, case, device=world.device, dtype=torch.float32)
        assert not problem, f"{case.label}: {problem}"

    judged()
