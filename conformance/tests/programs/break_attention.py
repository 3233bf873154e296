"""Runs the checks of attention on the simulated device, right and with a kernel that is wrong.

Usage: python break_attention.py REPORT. Each change is to what one check is about.
"""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import torch

import cuda_morph
from cuda_morph.ecosystem.attention import kernels
from cuda_morph_conformance.checks import attention
from cuda_morph_conformance.registry import CHECKS, NotRun
from cuda_morph_conformance.subject import Subject


def change(**options):
    """Returns a kernel's function with arguments changed; ``...`` takes one away."""

    def wrap(function):
        def changed(*tensors, **given):
            for name, value in options.items():
                if name in given:
                    if value is ...:
                        del given[name]
                    else:
                        given[name] = value(given[name])
            return function(*tensors, **given)

        return changed

    return wrap


def without(*features):
    def wrap(kernel):
        return replace(kernel, features=tuple(f for f in kernel.features if f not in features))

    return wrap


def every(wrapper):
    def wrap(kernel):
        return replace(
            kernel,
            forward=wrapper(kernel.forward),
            varlen=wrapper(kernel.varlen),
            kvcache=wrapper(kernel.kvcache),
        )

    return wrap


def answer(make):
    """Returns a wrapper that changes what a kernel's function returns."""

    def wrap(function):
        return lambda *tensors, **given: make(*function(*tensors, **given))

    return every(wrap)


def swapped_heads(function):
    def changed(query, key, value, **given):
        return function(query, key.flip(-2), value.flip(-2), **given)

    return changed


def top_left(function):
    def changed(query, key, value, **given):
        if given.pop("causal", False):
            mask = torch.ones(query.shape[1], key.shape[1], dtype=torch.bool, device=query.device)
            given["mask"] = mask.tril()
        return function(query, key, value, **given)

    return changed


def one_sequence(function):
    def changed(*tensors, cu_seqlens_q, cu_seqlens_k, **given):
        both = [ends[[0, -1]] for ends in (cu_seqlens_q, cu_seqlens_k)]
        return function(*tensors, cu_seqlens_q=both[0], cu_seqlens_k=both[1], **given)

    return changed


def forgets_keys(out, lse):
    out.register_hook(lambda grad: grad * 0.5) if out.requires_grad else None
    return out, lse


KERNELS = {
    "CM-ATTN-011": lambda kernel: replace(kernel, dtypes=()),
    "CM-ATTN-012": every(change(scale=lambda s: 1.0)),
    "CM-ATTN-013": answer(forgets_keys),
    "CM-ATTN-014": lambda kernel: replace(kernel, forward=top_left(kernel.forward)),
    "CM-ATTN-015": answer(lambda out, lse: (out, lse.masked_fill(lse == torch.inf, -torch.inf))),
    "CM-ATTN-016": lambda kernel: replace(kernel, mask_convention="true_masks"),
    "CM-ATTN-017": every(change(dropout_p=lambda p: 1 - p)),
    "CM-ATTN-018": every(swapped_heads),
    "CM-ATTN-019": lambda kernel: replace(kernel, varlen=one_sequence(kernel.varlen)),
    "CM-ATTN-020": answer(forgets_keys),
    "CM-ATTN-021": every(change(cache_seqlens=lambda n: n + 1)),
    "CM-ATTN-022": every(change(block_table=lambda t: (t + 1) % 3)),
    "CM-ATTN-023": every(change(window=lambda w: (w[0] + 1, w[1]))),
    "CM-ATTN-024": every(change(softcap=lambda c: 2 * c)),
    "CM-ATTN-025": every(change(alibi_slopes=lambda s: -s)),
    "CM-ATTN-026": answer(lambda out, lse: (out, lse * 1.4427)),
    "CM-ATTN-027": lambda kernel: replace(kernel, dtypes=()),
}
"""The kernel that each check must find wrong."""

SDPA = torch.nn.functional.scaled_dot_product_attention
OPERATOR = {
    "CM-ATTN-001": lambda *heads, scale=None, **more: SDPA(*heads, scale=0.9, **more),
    "CM-ATTN-002": lambda *heads, attn_mask=None, **more: SDPA(*heads, attn_mask=~attn_mask),
    "CM-ATTN-003": lambda *heads, **more: forgets_keys(SDPA(*heads, **more), None)[0],
}


def judged(check_id):
    try:
        CHECKS[check_id].run(Subject("sim"))
    except NotRun as reason:
        return f"missing: {reason}"
    except BaseException as error:
        return f"failed: {error!r}"
    return "passed"


def broken(check_id, kernel):
    offered = kernels.OFFER
    package = importlib.import_module("flash_attn")
    right = package.flash_attn_func
    try:
        if check_id in OPERATOR:
            torch.nn.functional.scaled_dot_product_attention = OPERATOR[check_id]
        elif check_id in KERNELS:
            offered._kernels = (KERNELS[check_id](kernel),)
        else:
            package.flash_attn_func = lambda q, *rest, **more: q[:, :1]
        return judged(check_id)
    finally:
        torch.nn.functional.scaled_dot_product_attention = SDPA
        package.flash_attn_func = right
        offered._kernels = (kernel,)


def main() -> None:
    cuda_morph.activate("sim", view="cuda")
    [kernel] = kernels.OFFER.kernels()
    mine = [one.id for one in CHECKS.values() if one.run.__module__ == attention.__name__]
    report = {check_id: (judged(check_id), broken(check_id, kernel)) for check_id in mine}
    Path(sys.argv[1]).write_text(json.dumps(report))


if __name__ == "__main__":
    main()
