"""The attention kernels: translation to torch_npu's operators, and the operators' simulation."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("cuda_morph_conformance")

PROGRAM = Path(__file__).with_name("attention_on_simulation.py")


@functools.cache
def printed(*arguments: str, path: str = "") -> list[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_MORPH")}
    done = subprocess.run(
        [sys.executable, *arguments],
        env=clean | {"OMP_NUM_THREADS": "1"} | ({"PYTHONPATH": path} if path else {}),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.mark.long
def test_every_case_of_the_grid_is_right() -> None:
    counts, answers = printed(str(PROGRAM), "grid")
    assert counts.endswith("problems 0"), counts
    assert "npu_fusion_attention.forward" in answers


@pytest.mark.long
def test_packed_sequences_masks_and_decoding_are_right() -> None:
    [answers] = printed(str(PROGRAM), "rest")
    for entry in ("varlen", "forward", "kvcache"):
        assert f"npu_fusion_attention.{entry}" in answers


@pytest.mark.long
def test_a_wrong_translation_gives_wrong_numbers() -> None:
    [line] = printed(str(PROGRAM), "mutations")
    assert line.endswith("alive []"), line


FAKE = """
from cuda_morph.ecosystem.attention import composed, Options
calls = []
def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False,
                    window_size=(-1, -1), softcap=0.0, alibi_slopes=None, deterministic=False,
                    return_attn_probs=False):
    calls.append("dense")
    assert not (dropout_p or alibi_slopes is not None or return_attn_probs)
    return composed.attend(q, k, v, Options(scale=softmax_scale, causal=causal,
                           window=window_size, softcap=softcap))[0]
def flash_attn_varlen_func(q, *rest, **options):
    calls.append("packed")
    return q
"""

USES = """
import sys
sys.path.insert(0, {folder!r})
import attention_on_simulation as tools, torch
tools.activate()
import flash_attn, {package}
from cuda_morph.ecosystem.attention import answered
q = torch.randn(1, 4, 4, 16, dtype=torch.float16)
flash_attn.flash_attn_func(q, q, q, causal=True)
flash_attn.flash_attn_func(q, q, q, softcap=2.0)
flash_attn.flash_attn_func(q, q, q, dropout_p=0.1)
flash_attn.flash_attn_func(q, q, q, return_attn_probs=True)
flash_attn.flash_attn_func(q, q[:, :2], q[:, :2], causal=True)
flash_attn.flash_attn_func(q.float(), q.float(), q.float())
ends = torch.tensor([0, 4], dtype=torch.int32)
flash_attn.flash_attn_varlen_func(q[0], q[0], q[0], ends, ends, 4, 4)
print(answered())
"""


def test_a_real_flash_attn_for_the_card_comes_first_where_it_may(tmp_path: Path) -> None:
    (tmp_path / "flash_attn_npu.py").write_text(FAKE)
    program = USES.format(folder=str(PROGRAM.parent), package="flash_attn_npu")
    [line] = printed("-c", program, path=str(tmp_path))
    assert eval(line) == {
        "flash_attn_npu.forward": 2,
        "npu_fusion_attention.forward": 4,
        "flash_attn_npu.varlen": 1,
    }


def test_a_flash_attn_that_refuses_the_chip_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "flash_attn_npu.py").write_text("raise RuntimeError('this chip is not supported')")
    program = USES.format(folder=str(PROGRAM.parent), package="torch")
    [line] = printed("-c", program, path=str(tmp_path))
    assert eval(line) == {
        "npu_fusion_attention.forward": 5,
        "composed": 1,
        "npu_fusion_attention.varlen": 1,
    }
