"""The attention kernel calls torch_mlu_ops as published, and only where that is known to be right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("cuda_morph_conformance")

# Stands for the vendor's package, which is not on the package index. Packed sequences, and a
# causal mask for squares; anything else is an error here, as nothing is published about it.
STAND_IN = """
import torch
def flash_attention(q, k, v, out, cu_seq_lens_q, cu_seq_lens_kv, alibi_slopes, attn_bias,
                    max_seq_len_q, max_seq_len_kv, softmax_scale, is_causal, window_size_left=-1,
                    window_size_right=-1, compute_dtype=torch.float, return_lse=False,
                    block_tables=None):
    assert out is alibi_slopes is attn_bias is block_tables is None and not return_lse
    assert (window_size_left, window_size_right) == (-1, -1) and compute_dtype == q.dtype
    parts = []
    for n in range(len(cu_seq_lens_q) - 1):
        rows = slice(cu_seq_lens_q[n], cu_seq_lens_q[n + 1])
        columns = slice(cu_seq_lens_kv[n], cu_seq_lens_kv[n + 1])
        a, b, c = (part.float().transpose(0, 1) for part in (q[rows], k[columns], v[columns]))
        assert a.shape[0] == b.shape[0] and a.shape[1] <= max_seq_len_q
        scores = a @ b.transpose(1, 2) * softmax_scale
        if is_causal:
            assert a.shape[1] == b.shape[1] <= max_seq_len_kv
            scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
        parts.append((torch.softmax(scores, -1) @ c).transpose(0, 1).to(q.dtype))
    return torch.cat(parts)
"""

PROGRAM = """
import cuda_morph, torch
cuda_morph.activate("cpu")
from cuda_morph.ecosystem.attention import answered, kernels
from cuda_morph_cambricon import plugin
from cuda_morph_conformance.attention_grid import difference, grid, packed, packed_reference
from cuda_morph_conformance.attention_reference import Case
from flash_attn import flash_attn_func, flash_attn_varlen_func
kernels.OFFER._kernels = tuple(plugin.cuda_morph_attention_kernels())

def call(q, k, v, case):
    options = {"softmax_scale": case.scale, "causal": case.causal, "window_size": case.window}
    return flash_attn_func(q, k, v, softcap=case.softcap, alibi_slopes=case.slopes(), **options), None

problems = [
    problem for case in grid() if case.keys < 10 and
    (problem := difference(call, case, device="cpu", dtype=torch.float16, backward=False))
]
lengths, case = ((5, 5), (1, 1), (8, 8)), Case(batch=3, causal=True)
q, k, v, ends, _ = packed(lengths, case)
out = flash_attn_varlen_func(q.half(), k.half(), v.half(), ends, ends, 8, 8, causal=True)
wanted, _ = packed_reference(lengths, case, *(part.half().double() for part in (q, k, v)))
torch.testing.assert_close(out.double(), wanted, rtol=5e-3, atol=5e-3)
print(len(problems), answered().get("mlu_flash_attention.forward", 0),
      answered().get("mlu_flash_attention.varlen", 0))
"""


def printed(path: Path) -> list[int]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_MORPH")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=clean | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [int(word) for word in done.stdout.split()]


@pytest.mark.long
def test_every_case_is_right_and_plain_ones_use_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "torch_mlu_ops.py").write_text(STAND_IN)
    problems, dense, ragged = printed(tmp_path)
    assert problems == 0
    assert dense > 10
    assert ragged == 1


@pytest.mark.long
def test_every_case_is_right_without_the_package(tmp_path: Path) -> None:
    assert printed(tmp_path) == [0, 0, 0]
