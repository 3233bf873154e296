"""Runs flash_attn's functions through the plugin's kernels over the simulated operators.

Usage: python attention_on_simulation.py grid | packed | mutations. The device is the CPU: what is
under test is the translation, and the operators that it calls have the vendor's conventions.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import torch

import cuda_morph
from cuda_morph.adapter import provide
from cuda_morph.ecosystem.attention import Options, answered, attend, kernels
from cuda_morph_ascend import plugin, simulated_attention
from cuda_morph_conformance.attention_grid import difference, grid, packed, packed_reference
from cuda_morph_conformance.attention_reference import Case, reference

MINE = ("npu_fusion_attention",)
OPERATORS = dict(simulated_attention.functions())


def activate():
    cuda_morph.activate("cpu")
    adapter = SimpleNamespace(**OPERATORS)
    provide(None, adapter)
    kernels.OFFER._kernels = tuple(plugin.cuda_morph_attention_kernels())
    return adapter


def options(case):
    return {
        "softmax_scale": case.scale,
        "causal": case.causal,
        "window_size": case.window,
        "softcap": case.softcap,
        "alibi_slopes": case.slopes(),
    }


def with_logarithms(q, k, v, case):
    from flash_attn import flash_attn_func

    return flash_attn_func(q, k, v, return_attn_probs=True, **options(case))[:2]


def output_only(q, k, v, case):
    from flash_attn import flash_attn_func

    return flash_attn_func(q, k, v, **options(case)), None


def masked(q, k, v, case):
    """Attention with an explicit mask, some rows of which hide everything."""
    mask = mask_of(case)
    wanted = Options(scale=case.scale or q.shape[-1] ** -0.5, causal=case.causal,
                     window=case.window, mask=mask, return_lse=True)  # fmt: skip
    return attend(q, k, v, wanted)


def mask_of(case):
    generator = torch.Generator().manual_seed(3)
    shape = (case.batch, case.heads, case.queries, case.keys)
    mask = torch.rand(shape, generator=generator) < 0.6
    mask[:, :, 0] = False
    return mask


def masked_problem(case):
    """Like `difference`, with a mask."""
    exact = [t.float().double().requires_grad_() for t in case.tensors()]
    given = [t.detach().float().requires_grad_() for t in exact]
    out, lse = masked(*given, case)
    wanted, wanted_lse = reference(case, *exact, mask=mask_of(case))
    out.backward(torch.ones_like(out))
    wanted.backward(torch.ones_like(wanted))
    pairs = [(out, wanted), (lse, wanted_lse)]
    pairs += [(mine.grad, theirs.grad) for mine, theirs in zip(given, exact, strict=True)]
    try:
        for mine, theirs in pairs:
            torch.testing.assert_close(mine.double(), theirs, rtol=2e-5, atol=2e-5)
    except AssertionError as error:
        return f"{case.label} with a mask: {error}"
    return ""


def packed_problems(lengths, case):
    from flash_attn import flash_attn_varlen_func

    q, k, v, q_ends, k_ends = packed(lengths, case)
    exact = [t.float().double().requires_grad_() for t in (q, k, v)]
    given = [t.detach().float().requires_grad_() for t in exact]
    if torch.equal(q_ends, k_ends):
        k_ends = q_ends
    out, lse, _ = flash_attn_varlen_func(
        *given, q_ends, k_ends, max(a for a, _ in lengths), max(b for _, b in lengths),
        return_attn_probs=True, **options(case),
    )  # fmt: skip
    wanted, wanted_lse = packed_reference(lengths, case, *exact)
    out.backward(torch.ones_like(out))
    wanted.backward(torch.ones_like(wanted))
    pairs = [(out, wanted), (lse, wanted_lse)]
    pairs += [(mine.grad, theirs.grad) for mine, theirs in zip(given, exact, strict=True)]
    for mine, theirs in pairs:
        torch.testing.assert_close(mine.double(), theirs, rtol=2e-5, atol=2e-5)


def decode_problem(key_heads, window, dtype=torch.float16):
    from flash_attn import flash_attn_with_kvcache

    case = Case(batch=3, queries=1, keys=12, key_heads=key_heads, window=window)
    q, k, v = (t.to(dtype) for t in case.tensors())
    lengths = torch.tensor([4, 12, 7], dtype=torch.int32)
    out, lse = flash_attn_with_kvcache(
        q, k, v, cache_seqlens=lengths, window_size=window, causal=True, return_softmax_lse=True
    )
    for b, length in enumerate(lengths.tolist()):
        wanted, wanted_lse = reference(
            replace(case, causal=True),
            *(t[b : b + 1, :n].double() for t, n in ((q, 1), (k, length), (v, length))),
        )
        torch.testing.assert_close(out[b : b + 1].double(), wanted, rtol=5e-3, atol=5e-3)
        torch.testing.assert_close(lse[b : b + 1].double(), wanted_lse, rtol=5e-3, atol=5e-3)


LENGTHS = (((5, 5), (3, 3), (8, 8)), ((5, 9), (1, 4), (2, 2)), ((4, 2), (3, 7), (6, 6)))
PACKED = ({}, {"causal": True}, {"window": (2, 1)}, {"window": (2, 0), "causal": True},
          {"key_heads": 2, "scale": 0.5}, {"alibi": "heads"})  # fmt: skip
MASKED = (
    Case(), Case(causal=True), Case(queries=4, keys=9, key_heads=2, causal=True),
    Case(queries=9, keys=4, causal=True), Case(window=(2, 1), queries=4, keys=9),
    Case(window=(1, 0), causal=True),
)  # fmt: skip


def everything_else():
    for lengths in LENGTHS:
        for option in PACKED:
            packed_problems(lengths, Case(batch=3, **option))
    for key_heads in (4, 2, 1):
        for window in ((-1, -1), (3, 0), (3, 3)):
            decode_problem(key_heads, window)
    problems = [problem for case in MASKED if (problem := masked_problem(case))]
    assert not problems, problems[0]
    dropped()


def dropped():
    """Dropout drops the share asked for, and its gradient drops the same."""
    from flash_attn import flash_attn_func

    q, k = torch.zeros(2, 64, 4, 16), torch.zeros(2, 256, 4, 16)
    v = torch.ones_like(k).requires_grad_()
    out = flash_attn_func(q, k, v, dropout_p=0.2)
    assert abs(float(out.detach().mean()) - 1) < 0.02, float(out.detach().mean())
    spread = (0.2 / 0.8 / 256) ** 0.5
    assert abs(float(out.detach()[..., 0].std()) / spread - 1) < 0.2


def run_grid():
    activate()
    problems, count = [], 0
    for index, case in enumerate(grid()):
        dtype = (torch.float32, torch.float16, torch.bfloat16)[index % 3]
        for attention, kind in ((with_logarithms, torch.float32), (output_only, dtype)):
            count += 1
            problem = difference(attention, case, device="cpu", dtype=kind)
            if problem:
                problems.append(f"{case.label} {kind}: {problem}")
    print("calls", count, "problems", len(problems), *problems[:5])
    print(answered())


def changed(**changes):
    """Returns a mutation of keyword arguments; a value of ``...`` takes the argument away."""

    def mutate(arguments, keywords):
        for name, change in changes.items():
            if name not in keywords:
                continue
            if change is ...:
                del keywords[name]
            else:
                keywords[name] = change(keywords[name])
        return arguments, keywords

    return mutate


def swapped(arguments, keywords):
    if "pre_tockens" in keywords:
        keywords["pre_tockens"], keywords["next_tockens"] = (
            keywords["next_tockens"],
            keywords["pre_tockens"],
        )
    return arguments, keywords


def heads_of_keys(arguments, keywords):
    return (*arguments[:3], arguments[1].shape[-2], *arguments[4:]), keywords


def heads_first(arguments, keywords):
    return (*arguments[:4], arguments[4].replace("BSND", "BNSD"), *arguments[5:]), keywords


def without_last(ends):
    return [0, *ends[:-1]]


def lengths_of(ends):
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


FUSION, SECOND = "npu_fusion_attention", "npu_fusion_attention_v2"
INFER = "npu_fused_infer_attention_score"
MUTATIONS = {
    "the scale is left out": (FUSION, changed(scale=...)),
    "the mask keeps where true": (
        FUSION,
        changed(atten_mask=lambda m: m if m.shape[-1] == 2048 else ~m),
    ),
    "dropped share for kept share": (FUSION, changed(keep_prob=lambda p: 1 - p if p < 1 else p)),
    "causal at the top left": (FUSION, changed(sparse_mode=lambda m: 2 if m == 3 else m)),
    "band at the top left": (FUSION, changed(sparse_mode=lambda m: 0 if m == 4 else m)),
    "limits without their mask": (FUSION, changed(atten_mask=...)),
    "left and right swapped": (FUSION, swapped),
    "no limit to the right": (FUSION, changed(next_tockens=...)),
    "no limit to the left": (FUSION, changed(pre_tockens=...)),
    "one key too many to the left": (FUSION, changed(pre_tockens=lambda n: n + 1)),
    "transposed compressed mask": (FUSION, changed(atten_mask=lambda m: m.transpose(-1, -2))),
    "lengths instead of ends": (FUSION, changed(actual_seq_qlen=lengths_of)),
    "ends shifted by one sequence": (FUSION, changed(actual_seq_kvlen=without_last)),
    "ends on the device": (FUSION, changed(actual_seq_qlen=torch.tensor)),
    "statistics in the other layout": (FUSION, changed(softmax_layout=...)),
    "heads of the keys": (FUSION, heads_of_keys),
    "heads before the sequence": (FUSION, heads_first),
    "bias before scaling": (SECOND, changed(pse_type=lambda _: 1)),
    "bias with the wrong sign": (SECOND, changed(pse=lambda b: -b)),
    "no bias": (SECOND, changed(pse=...)),
    "no key heads at decoding": (INFER, changed(num_key_value_heads=...)),
    "no lengths at decoding": (INFER, changed(actual_seq_lengths_kv=...)),
    "no scale at decoding": (INFER, changed(scale=...)),
    "no window at decoding": (INFER, changed(atten_mask=...)),
}


def mutated(name, change):
    def operator(*arguments, **keywords):
        arguments, keywords = change(arguments, dict(keywords))
        return OPERATORS[name](*arguments, **keywords)

    return operator


def small_grid():
    chosen = [case for case in grid() if case.softcap == 0 and case.keys < 10 and case.dim == 16]
    problems = [
        problem
        for case in chosen[::4]
        if (problem := difference(with_logarithms, case, device="cpu", dtype=torch.float32))
    ]
    assert not problems, problems[0]
    everything_else()


def survives(adapter, name, change):
    torch.manual_seed(0)
    vars(adapter).update(OPERATORS)
    setattr(adapter, name, mutated(name, change))
    try:
        small_grid()
    except Exception:
        return False
    return True


def run_mutations():
    adapter = activate()
    small_grid()
    alive = [title for title, rule in MUTATIONS.items() if survives(adapter, *rule)]
    print("mutations", len(MUTATIONS), "alive", alive)


def run_rest():
    activate()
    torch.manual_seed(0)
    everything_else()
    print(answered())


if __name__ == "__main__":
    {"grid": run_grid, "mutations": run_mutations, "rest": run_rest}[sys.argv[1]]()
