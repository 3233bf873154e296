"""What the stand-in for flash_attn offers: names, parameters, metadata, and what it refuses."""

from __future__ import annotations

import importlib.metadata
import inspect
import pickle
import subprocess
import sys

import flash_attn
import pytest
import torch
from flash_attn import bert_padding, flash_attn_interface
from flash_attn.layers import rotary
from flash_attn.losses.cross_entropy import CrossEntropyLoss
from flash_attn.ops.rms_norm import DropoutAddRMSNorm, RMSNorm, rms_norm
from flash_attn.ops.triton.cross_entropy import cross_entropy_loss
from flash_attn.ops.triton.layer_norm import layer_norm_fn, rms_norm_fn

TAIL = (
    "dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, "
    "alibi_slopes=None, deterministic=False, return_attn_probs=False"
)
ENDS = "cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k"
SIGNATURES = {
    "flash_attn_func": f"q, k, v, {TAIL}",
    "flash_attn_qkvpacked_func": f"qkv, {TAIL}",
    "flash_attn_kvpacked_func": f"q, kv, {TAIL}",
    "flash_attn_varlen_func": f"q, k, v, {ENDS}, {TAIL}, block_table=None",
    "flash_attn_varlen_qkvpacked_func": f"qkv, cu_seqlens, max_seqlen, {TAIL}",
    "flash_attn_varlen_kvpacked_func": f"q, kv, {ENDS}, {TAIL}",
    "flash_attn_with_kvcache": "q, k_cache, v_cache, k=None, v=None, rotary_cos=None, "
    "rotary_sin=None, cache_seqlens=None, cache_batch_idx=None, cache_leftpad=None, "
    "block_table=None, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, "
    "rotary_interleaved=True, alibi_slopes=None, num_splits=0, return_softmax_lse=False",
}
"""As flash_attn 2.8 documents them."""

MORE = (
    (bert_padding.unpad_input, "hidden_states, attention_mask, unused_mask=None"),
    (bert_padding.pad_input, "hidden_states, indices, batch, seqlen"),
    (
        rotary.apply_rotary_emb,
        (
            "x, cos, sin, interleaved=False, inplace=False, seqlen_offsets=0, cu_seqlens=None, "
            "max_seqlen=None"
        ),
    ),
    (rms_norm, "x, weight, epsilon"),
)


def shown(function):
    """Returns the parameters of a function, without annotations."""
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
    ]
    return ", ".join(map(str, parameters))


def check_parameters_are_those_of_flash_attn(world):
    assert {name: shown(getattr(flash_attn, name)) for name in SIGNATURES} == SIGNATURES
    assert {name: shown(getattr(flash_attn_interface, name)) for name in SIGNATURES} == SIGNATURES
    for function, wanted in MORE:
        assert shown(function) == wanted, (function, shown(function))


def check_metadata_says_what_it_is(world):
    version = importlib.metadata.version("flash_attn")
    assert version == importlib.metadata.version("flash-attn") == flash_attn.__version__
    assert version.startswith("2.8.")
    assert version.endswith("+cuda.morph")
    assert importlib.metadata.packages_distributions()["flash_attn"] == ["flash-attn"]
    assert importlib.metadata.distribution("flash_attn").metadata["Name"] == "flash-attn"


def check_functions_belong_to_the_name_they_are_imported_from(world):
    assert flash_attn.flash_attn_func.__module__ == "flash_attn.flash_attn_interface"
    assert pickle.loads(pickle.dumps(flash_attn.flash_attn_func)) is flash_attn.flash_attn_func


def check_missing_parts_are_import_errors(world):
    with pytest.raises(ModuleNotFoundError, match=r"flash_attn\.cute"):
        import flash_attn.cute  # noqa: F401


def refused(text, *arguments, **options):
    with pytest.raises(RuntimeError, match=text):
        flash_attn.flash_attn_func(*arguments, **options)


def check_tensors_that_do_not_fit_are_refused(world):
    q, k, v = (torch.randn(1, 4, 4, 16, device=world.device) for _ in range(3))
    refused("fp16 and bf16", q.int(), k.int(), v.int())
    refused("same dtype", q, k.half(), v)
    refused("must divide", q, k[:, :, :3], v[:, :, :3])
    slopes = torch.ones(4, device=world.device, dtype=torch.float16)
    refused("fp32", q, k, v, alibi_slopes=slopes)


def check_packed_forms_agree(world):
    q, k, v = (torch.randn(2, 6, 4, 16, device=world.device) for _ in range(3))
    wanted = flash_attn.flash_attn_func(q, k, v, causal=True)
    three = flash_attn.flash_attn_qkvpacked_func(torch.stack([q, k, v], 2), causal=True)
    two = flash_attn.flash_attn_kvpacked_func(q, torch.stack([k, v], 2), causal=True)
    torch.testing.assert_close(three, wanted)
    torch.testing.assert_close(two, wanted)


def check_dropout_repeats_under_a_seed(world):
    q, k, v = (torch.randn(2, 33, 4, 16, device=world.device) for _ in range(3))
    outs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        outs.append(flash_attn.flash_attn_func(q, k, v, dropout_p=0.3))
    assert torch.equal(outs[0], outs[1])
    assert not torch.equal(outs[0], outs[2])


def check_dropout_drops_the_share_asked_for(world):
    # Values of one and keys of zero: each output is the kept share of equal probabilities.
    q, k = (
        torch.zeros(4, 64, 8, 16, device=world.device),
        torch.zeros(4, 256, 8, 16, device=world.device),
    )
    v = torch.ones_like(k)
    for p in (0.1, 0.5, 0.9):
        out = flash_attn.flash_attn_func(q, k, v, dropout_p=p)
        rows = out[..., 0].flatten().double().cpu()
        assert abs(rows.mean() - 1) < 0.02, (p, rows.mean())
        spread = (p / (1 - p) / 256) ** 0.5
        assert abs(rows.std() / spread - 1) < 0.1, (p, rows.std(), spread)


def check_dropout_mask_explains_the_output(world):
    q, k, v = (torch.randn(2, 9, 4, 16, device=world.device, requires_grad=True) for _ in range(3))
    torch.manual_seed(3)
    out, lse, drops = flash_attn.flash_attn_func(
        q, k, v, dropout_p=0.4, causal=True, return_attn_probs=True
    )
    kept = drops.clamp(min=0) / 0.6
    torch.testing.assert_close((kept @ v.transpose(1, 2)).transpose(1, 2), out)
    assert lse.shape == (2, 4, 9)
    assert ((drops < 0).float().mean() / (drops != 0).float().mean() - 0.4).abs() < 0.1


def check_gradients_with_dropout_match_their_own_mask(world):
    # The backward pass must drop what the forward pass dropped: a linear function's slope.
    q, k = (torch.randn(1, 7, 2, 16, device=world.device) for _ in range(2))
    v = torch.randn(1, 7, 2, 16, device=world.device, requires_grad=True)
    torch.manual_seed(5)
    out = flash_attn.flash_attn_func(q, k, v, dropout_p=0.5)
    seed = torch.randn_like(out)
    (slope,) = torch.autograd.grad(out, v, seed)
    torch.testing.assert_close((slope * v).sum(), (out * seed).sum(), rtol=1e-4, atol=1e-4)


def check_deterministic_gradients_repeat(world):
    q, k, v = (torch.randn(2, 33, 4, 16, device=world.device) for _ in range(3))
    grads = []
    for _ in range(2):
        leaf = q.clone().requires_grad_()
        flash_attn.flash_attn_func(leaf, k, v, deterministic=True).sum().backward()
        grads.append(leaf.grad)
    assert torch.equal(*grads)


def check_autocast_leaves_the_dtype_alone(world):
    q, k, v = (torch.randn(1, 4, 4, 16, device=world.device) for _ in range(3))
    plain = flash_attn.flash_attn_func(q, k, v)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        mixed = flash_attn.flash_attn_func(q, k, v)
        capped = flash_attn.flash_attn_func(q, k, v, softcap=1e6)
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, plain)
    torch.testing.assert_close(capped, plain, rtol=1e-4, atol=1e-4)


def check_padding_goes_and_comes_back(world):
    x = torch.randn(2, 4, 3, 5, device=world.device, requires_grad=True)
    mask = torch.tensor([[1, 1, 0, 0], [0, 1, 1, 1]], device=world.device)
    rows, indices, ends, longest, used = bert_padding.unpad_input(x, mask)
    assert (ends.tolist(), longest, used.tolist()) == ([0, 2, 5], 3, [2, 3])
    assert ends.dtype == torch.int32
    first, _, _, fourth = bert_padding.unpad_input(x, mask)
    assert torch.equal(first, rows)
    assert fourth == 3
    assert len([*bert_padding.unpad_input(x, mask)]) == 5
    assert len(bert_padding.unpad_input(x, mask)) == 5
    back = bert_padding.pad_input(rows, indices, 2, 4)
    assert torch.equal(back, x * mask[..., None, None])
    back.sum().backward()
    assert torch.equal(x.grad, mask[..., None, None].expand_as(x).to(x.dtype))
    _, indices, ends, _, used = bert_padding.unpad_input(x, mask, unused_mask=1 - mask)
    assert (len(indices), ends.tolist(), used.tolist()) == (8, [0, 4, 8], [2, 3])


def check_concatenated_sequences(world):
    x = torch.arange(18.0, device=world.device).reshape(3, 6, 1)
    lengths = torch.tensor(
        [[2, 3, 0, 0, 0, 0], [3, 2, 0, 0, 0, 0], [6, 0, 0, 0, 0, 0]], device=world.device
    )
    rows, _, ends, longest = bert_padding.unpad_input_for_concatenated_sequences(x, lengths)
    assert ends.tolist() == [0, 2, 5, 8, 10, 16]
    assert longest == 6
    assert rows.flatten().tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 17]


def check_rotary_embedding(world):
    x = torch.randn(2, 5, 3, 16, device=world.device)
    angle = torch.rand(12, 4, device=world.device) * 6
    cos, sin = angle.cos(), angle.sin()
    for interleaved in (False, True):
        out = rotary.apply_rotary_emb(x, cos, sin, interleaved, seqlen_offsets=3)
        wanted = rotary.apply_rotary_emb_torch(x, cos[3:8], sin[3:8], interleaved)
        torch.testing.assert_close(out, wanted)
        # Turning keeps lengths, and turning a query and a key together keeps their product.
        torch.testing.assert_close(out.norm(dim=-1), x.norm(dim=-1))
        where = torch.tensor([1, 4], device=world.device)
        moved = rotary.apply_rotary_emb(x, cos, sin, interleaved, seqlen_offsets=where)
        torch.testing.assert_close(
            moved[1:], rotary.apply_rotary_emb_torch(x[1:], cos[4:9], sin[4:9], interleaved)
        )
        ends = torch.tensor([0, 2, 5], dtype=torch.int32, device=world.device)
        flat = rotary.apply_rotary_emb(x[0], cos, sin, interleaved, cu_seqlens=ends, max_seqlen=3)
        torch.testing.assert_close(
            flat[2:], rotary.apply_rotary_emb_torch(x[:1, 2:], cos[:3], sin[:3], interleaved)[0]
        )


def check_rotary_in_place_with_gradients(world):
    angle = torch.rand(12, 8, device=world.device) * 6
    qkv = torch.randn(2, 5, 3, 4, 16, device=world.device, requires_grad=True)
    work = qkv.clone()
    out = rotary.apply_rotary_emb_qkv_(work, angle.cos(), angle.sin())
    assert out.data_ptr() == work.data_ptr()
    for part in (0, 1):
        torch.testing.assert_close(
            out[:, :, part], rotary.apply_rotary_emb(qkv[:, :, part], angle.cos(), angle.sin())
        )
    assert torch.equal(out[:, :, 2], qkv[:, :, 2])
    out.square().sum().backward()
    # A turn keeps the sum of squares, so its gradient is that of the sum of squares.
    torch.testing.assert_close(qkv.grad, 2 * qkv.detach(), rtol=1e-4, atol=1e-5)
    module = rotary.RotaryEmbedding(16, device=world.device)
    assert module(torch.randn(2, 5, 3, 4, 16, device=world.device)).shape == (2, 5, 3, 4, 16)


def check_norms(world):
    x = torch.randn(4, 6, 32, device=world.device)
    weight, bias = torch.randn(2, 32, device=world.device)
    wanted = torch.nn.functional.rms_norm(x, (32,), weight, 1e-5)
    torch.testing.assert_close(rms_norm(x, weight, 1e-5), wanted)
    module = RMSNorm(32, device=world.device)
    torch.testing.assert_close(module(x), torch.nn.functional.rms_norm(x, (32,), eps=1e-5))
    out, total = DropoutAddRMSNorm(32, prenorm=True, device=world.device)(x, x)
    torch.testing.assert_close(total, 2 * x)
    torch.testing.assert_close(out, torch.nn.functional.rms_norm(2 * x, (32,), eps=1e-5))
    wanted = torch.nn.functional.layer_norm(3 * x, (32,), weight, bias, 1e-6)
    torch.testing.assert_close(layer_norm_fn(x, weight, bias, residual=x, x1=x), wanted)
    half = rms_norm_fn(x.half(), weight, None, zero_centered_weight=True)
    assert half.dtype == torch.float16
    wanted = torch.nn.functional.rms_norm(x, (32,), weight + 1, 1e-6)
    torch.testing.assert_close(half.float(), wanted, rtol=1e-2, atol=1e-2)


def check_cross_entropy(world):
    logits = torch.randn(9, 11, device=world.device, requires_grad=True)
    labels = torch.tensor([0, 1, 2, 3, 4, -100, 6, 7, 10], device=world.device)
    for smoothing in (0.0, 0.2):
        for reduction in ("mean", "sum", "none"):
            wanted = torch.nn.functional.cross_entropy(
                logits, labels, label_smoothing=smoothing, reduction=reduction
            )
            mine = CrossEntropyLoss(label_smoothing=smoothing, reduction=reduction)
            torch.testing.assert_close(mine(logits, labels), wanted)
    losses, penalty = cross_entropy_loss(logits, labels, lse_square_scale=0.1, logit_scale=0.5)
    lse = torch.logsumexp(logits * 0.5, -1)
    wanted = (0.1 * lse.square()).masked_fill(labels == -100, 0)
    torch.testing.assert_close(penalty, wanted.detach())
    plain = torch.nn.functional.cross_entropy(logits * 0.5, labels, reduction="none")
    torch.testing.assert_close(losses, plain + wanted)


def check_children_do_not_need_the_stand_in(world):
    code = "import torch; print('flash_attn' in __import__('sys').modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
