"""Runs flash_attn_func through the plugin's kernel over the simulated operator, on the CPU.

Usage: python attention_on_simulation.py right | scale | causal | heads. The words after the
first are mistakes in the translation; each must show.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import torch

import cuda_morph
from cuda_morph.ecosystem.attention import answered, kernels
from cuda_morph_conformance.attention_grid import difference, grid
from cuda_morph_musa import attention, plugin, simulated_attention


def call(q, k, v, case):
    from flash_attn import flash_attn_func

    options = {"softmax_scale": case.scale, "causal": case.causal, "window_size": case.window}
    return flash_attn_func(
        q, k, v, softcap=case.softcap, alibi_slopes=case.slopes(), **options
    ), None


def anything(*_given, **_options):
    return True


def not_causal(*tensors, causal=False, **given):
    return attention.forward(*tensors, **given)


def sequence_first(*tensors, **given):
    out = attention.forward(*(tensor.transpose(1, 2) for tensor in tensors), **given)
    return out.transpose(1, 2)


def main(mistake):
    cuda_morph.activate("cpu")
    simulated_attention.functions()
    [kernel] = plugin.cuda_morph_attention_kernels()
    if mistake == "scale":
        attention.math.isclose = anything
    changed = {"causal": not_causal, "heads": sequence_first}.get(mistake, kernel.forward)
    kernels.OFFER._kernels = (replace(kernel, forward=changed),)
    dtypes = (torch.float16, torch.bfloat16)
    problems = [
        problem
        for index, case in enumerate(grid())
        if case.keys < 10
        and (problem := difference(call, case, device="cpu", dtype=dtypes[index % 2]))
    ]
    print(len(problems), answered().get("flash_musa.forward", 0))


if __name__ == "__main__":
    main(sys.argv[1])
