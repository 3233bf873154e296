"""PyTorch's attention and the name flash_attn: what they compute, and in which kernel.

Expected values come from `cuda_morph_conformance.attention_reference`, in double precision, row by
row. A check of the fused kernel fails when the numbers are right but another path gave them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.attention_grid import difference, packed, packed_reference
from cuda_morph_conformance.attention_reference import CAP, Case, reference
from cuda_morph_conformance.attention_runs import (
    require_fused,
    require_right,
    require_same,
    slopes_on,
)
from cuda_morph_conformance.registry import NotRun, check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from cuda_morph_conformance.subject import Subject

_runs = partial(check, level=Level.RUNS, since="1.0", devices=1)
_trains = partial(check, level=Level.TRAINS, since="1.0", devices=1)
_fast = partial(check, level=Level.ACCELERATES, since="1.0", devices=1)

HALF = 0.5
"""Share of the keys that random masks keep."""
DROPPED = 0.2
FAR_MEAN, FAR_SPREAD = 0.02, 0.15
"""Ten standard errors, for the mean of 2048 rows of 256 probabilities and for their spread."""

_SQUARE = Case(queries=9, keys=9)
_LONGER = Case(queries=4, keys=9)


def _by_sdpa(query: Any, key: Any, value: Any, case: Case) -> tuple[Any, None]:
    """PyTorch's attention, whose causal mask is for squares."""
    import torch

    heads = [tensor.transpose(1, 2) for tensor in (query, key, value)]
    out = torch.nn.functional.scaled_dot_product_attention(
        *heads,
        is_causal=case.causal,
        scale=case.scale,
        enable_gqa=case.heads != case.key_heads,
    )
    return out.transpose(1, 2), None


@_runs("CM-ATTN-001", requires=("attn.sdpa",))
def sdpa_matches(_subject: Subject) -> None:
    """scaled_dot_product_attention MUST give what its definition gives, in each dtype it takes.

    Fix: compare with `SDPBackend.MATH`; if that is right, the fused kernel behind the operator is
    given a scale, a mask or a layout that it reads in another way.
    """
    import torch

    cases = (_SQUARE, Case(queries=9, keys=9, causal=True), Case(queries=5, keys=9, scale=0.3))
    for dtype in (torch.float32, torch.float16):
        for case in (*cases, Case(key_heads=2)):
            problem = difference(_by_sdpa, case, device="cuda", dtype=dtype, backward=False)
            require(not problem, f"{case.label} in {dtype}: {problem}")


@_runs("CM-ATTN-002", requires=("attn.sdpa",))
def sdpa_masks_keep_where_true(_subject: Subject) -> None:
    """A boolean mask of scaled_dot_product_attention MUST keep where it is true.

    Fix: an operator whose masks hide where they are true needs the inverted mask.
    """
    import torch

    query, key, value = (tensor.float() for tensor in _LONGER.tensors())
    mask = torch.rand(2, 4, 4, 9, generator=torch.Generator().manual_seed(1)) < HALF
    mask[..., 0] = True
    heads = [tensor.transpose(1, 2).cuda() for tensor in (query, key, value)]
    out = torch.nn.functional.scaled_dot_product_attention(*heads, attn_mask=mask.cuda())
    wanted, _ = reference(_LONGER, query.double(), key.double(), value.double(), mask=mask)
    require_same(out.transpose(1, 2), wanted, "the output")


@_trains("CM-ATTN-003", requires=("attn.sdpa",))
def sdpa_gradients_match(_subject: Subject) -> None:
    """Gradients of scaled_dot_product_attention MUST be those of its definition.

    Fix: register a derivative for the fused operator, or let autograd see the composed one.
    """
    import torch

    for case in (_SQUARE, Case(causal=True), Case(key_heads=2)):
        problem = difference(_by_sdpa, case, device="cuda", dtype=torch.float32)
        require(not problem, f"{case.label}: {problem}")


@_fast("CM-ATTN-010", requires=("attn.flash_attn_import",))
def flash_attn_can_be_imported(_subject: Subject) -> None:
    """flash_attn MUST be importable with its version, and its functions MUST run on the device.

    Fix: nothing is asked of the plugin; a package of that name that fails at import is in the way.
    """
    import importlib.metadata

    import flash_attn
    import torch
    from flash_attn.bert_padding import pad_input, unpad_input

    require(importlib.metadata.version("flash_attn") >= "2", "the version is below 2")
    query = torch.randn(1, 5, 4, 16, device="cuda", dtype=torch.float16)
    out = flash_attn.flash_attn_func(query, query, query, causal=True)
    require(out.shape == query.shape and out.is_cuda, f"got {out.shape} on {out.device}")
    mask = torch.tensor([[1, 1, 1, 0, 0]], device="cuda")
    rows, indices, ends, longest, used = unpad_input(query, mask)
    require([*ends.tolist(), longest, *used.tolist()] == [0, 3, 3, 3], "unpad_input is wrong")
    back = pad_input(rows, indices, 1, 5)
    require(torch.equal(back[:, :3], query[:, :3]) and not back[:, 3:].any(), "pad_input is wrong")


@_fast("CM-ATTN-011", requires=("attn.fused",))
def a_fused_kernel_answers(_subject: Subject) -> None:
    """Attention MUST be computed by a kernel of the plugin, and MUST be right.

    Fix: return an `AttentionKernel` from ``cuda_morph_attention_kernels`` that takes half
    precision; its docstring says what it is given.
    """
    require_fused(_SQUARE)
    require_fused(_LONGER)


@_fast("CM-ATTN-012", requires=("attn.flash_attn_import",))
def the_scale_is_passed(_subject: Subject) -> None:
    """Attention with a scale of its own MUST be computed with that scale.

    Fix: pass ``scale`` on every call; vendors' defaults differ, and 1 is a common one.
    """
    require_right(Case(scale=0.7))


@_fast("CM-ATTN-013", requires=("attn.backward",))
def the_fused_kernel_has_gradients(_subject: Subject) -> None:
    """Gradients of the fused kernel MUST be those of the definition.

    Fix: give the kernel a backward pass and list ``backward`` among its features.
    """
    require_fused(_SQUARE, backward=True)


@_fast("CM-ATTN-014", requires=("attn.causal",))
def the_causal_mask_ends_at_the_last_key(_subject: Subject) -> None:
    """The fused kernel MUST have a causal mask, which MUST end at the last query and the last key.

    Fix: choose the mode that aligns at the bottom right; at the top left it is another mask as soon
    as there are more keys than queries. A kernel without such a mode raises NotImplementedError.
    """
    require_fused(Case(queries=9, keys=9, causal=True))
    require_right(Case(queries=4, keys=9, causal=True))


@_fast("CM-ATTN-015", requires=("attn.flash_attn_import",))
def rows_without_a_key_are_zero(_subject: Subject) -> None:
    """A query that sees no key MUST give zeros and an infinite logarithm, not NaN.

    Fix: leave ``empty_rows`` out of the kernel's features, or clear these rows in the kernel.
    """
    require_right(Case(queries=9, keys=4, causal=True), logarithms=True)


@_fast("CM-ATTN-016", requires=("attn.mask",))
def the_fused_kernel_takes_a_mask(_subject: Subject) -> None:
    """The fused kernel MUST keep where a mask is true, and give zeros where a row hides all.

    Fix: say ``mask_convention="true_masks"`` if the kernel hides where a mask is true.
    """
    import torch

    mask = torch.rand(2, 4, 4, 9, generator=torch.Generator().manual_seed(1)) < HALF
    mask[0, 1, 2] = False
    require_fused(_LONGER, mask=mask)


@_fast("CM-ATTN-017", requires=("attn.dropout",))
def the_fused_kernel_drops_what_was_asked(_subject: Subject) -> None:
    """The fused kernel MUST drop the share asked for, scale the rest, and repeat under a seed.

    Fix: many operators take the kept share instead; draw from the device's default generator.
    """
    import torch
    from flash_attn import flash_attn_func

    shape = (2, 256, 4, 16)
    query, key = (torch.zeros(shape, device="cuda", dtype=torch.float16) for _ in range(2))
    value = torch.ones_like(key)

    def drop(seed: int) -> Any:
        torch.manual_seed(seed)
        return flash_attn_func(query, key, value, dropout_p=DROPPED)[..., 0].float().cpu()

    first = require_fused.entry(lambda: drop(1), "")
    again, other = drop(1), drop(2)
    require(torch.equal(first, again), "the same seed drops differently")
    require(not torch.equal(first, other), "another seed drops the same")
    mean = float(first.mean())
    require(abs(mean - 1) < FAR_MEAN, f"the mean of ones is {mean:.3f}")
    spread = float(first.std()) / (DROPPED / (1 - DROPPED) / shape[1]) ** 0.5
    require(
        abs(spread - 1) < FAR_SPREAD,
        f"the spread is {spread:.2f} times that of the share asked for",
    )


@_fast("CM-ATTN-018", requires=("attn.gqa",))
def query_heads_share_key_heads(_subject: Subject) -> None:
    """The fused kernel MUST give neighbouring query heads the same key head.

    Fix: head h uses key head h // (heads / key heads), not h modulo the number of key heads.
    """
    require_fused(Case(key_heads=2))
    require_fused(Case(key_heads=1, causal=True))


@_fast("CM-ATTN-019", requires=("attn.varlen",))
def packed_sequences_do_not_mix(_subject: Subject) -> None:
    """Packed sequences MUST be computed by the kernel's own entry, each within itself.

    Fix: check how the kernel wants lengths: ends or lengths, with or without the leading zero.
    """
    import torch
    from flash_attn import flash_attn_varlen_func

    lengths = ((5, 5), (1, 1), (8, 8))
    case = Case(batch=3, causal=True)
    query, key, value, ends, _ = packed(lengths, case)
    exact = [tensor.half().double() for tensor in (query, key, value)]
    wanted, _ = packed_reference(lengths, case, exact[0], exact[1], exact[2])
    given = [tensor.half().cuda() for tensor in (query, key, value)]
    ends = ends.cuda()

    def run() -> Any:
        return flash_attn_varlen_func(*given, ends, ends, 8, 8, causal=True)

    out = require_fused.entry(run, "varlen")
    require_same(out, wanted, "the output", torch.float16)


@_fast("CM-ATTN-020", requires=("attn.flash_attn_import",))
def packed_sequences_have_gradients(_subject: Subject) -> None:
    """Gradients through packed sequences MUST be those of each sequence by itself.

    Fix: give the varlen entry a backward pass, or raise NotImplementedError where it has none.
    """
    import torch
    from flash_attn import flash_attn_varlen_func

    lengths = ((5, 9), (2, 4))
    case = Case(batch=2, causal=True)
    query, key, value, q_ends, k_ends = packed(lengths, case)
    exact = [tensor.half().double().requires_grad_() for tensor in (query, key, value)]
    given = [tensor.half().cuda().requires_grad_() for tensor in (query, key, value)]
    wanted, _ = packed_reference(lengths, case, exact[0], exact[1], exact[2])
    out = flash_attn_varlen_func(*given, q_ends.cuda(), k_ends.cuda(), 5, 9, causal=True)
    out.sum().backward()
    wanted.sum().backward()
    for name, mine, theirs in zip(("queries", "keys", "values"), given, exact, strict=True):
        require_same(mine.grad, theirs.grad, f"the gradient of {name}", torch.float16)


@_fast("CM-ATTN-021", requires=("attn.kvcache",))
def decoding_reads_the_cache(_subject: Subject) -> None:
    """A decoding step MUST be computed by the kernel's own entry, over the filled positions only.

    Fix: pass the filled lengths on; positions behind them hold whatever was there before.
    """
    import torch
    from flash_attn import flash_attn_with_kvcache

    case = Case(batch=3, queries=1, keys=12, key_heads=2)
    query, key, value = (tensor.half() for tensor in case.tensors())
    lengths = torch.tensor([4, 12, 7], dtype=torch.int32)

    def run() -> Any:
        caches = (query.cuda(), key.cuda(), value.cuda())
        return flash_attn_with_kvcache(*caches, cache_seqlens=lengths.cuda(), causal=True)

    out = require_fused.entry(run, "kvcache")
    for b, length in enumerate(lengths.tolist()):
        part = [tensor[b : b + 1].double() for tensor in (query, key, value)]
        wanted, _ = reference(case, part[0], part[1][:, :length], part[2][:, :length])
        require_same(out[b : b + 1], wanted, f"sequence {b}", torch.float16)


@_fast("CM-ATTN-022", requires=("attn.flash_attn_import",))
def new_keys_are_written_in_place(_subject: Subject) -> None:
    """New keys MUST be written into the caller's cache, in rows and in pages, before they are read.

    Fix: index assignment on the device must write through views of the cache.
    """
    import torch
    from flash_attn import flash_attn_with_kvcache

    fresh = [torch.randn(2, 1, 2, 16, device="cuda", dtype=torch.float16) for _ in range(2)]
    query = torch.randn(2, 1, 4, 16, device="cuda", dtype=torch.float16)
    lengths = torch.tensor([3, 0], dtype=torch.int32, device="cuda")
    caches = [torch.zeros(2, 8, 2, 16, device="cuda", dtype=torch.float16) for _ in range(2)]
    rows = flash_attn_with_kvcache(query, *caches, *fresh, cache_seqlens=lengths)
    pages = [torch.zeros(3, 256, 2, 16, device="cuda", dtype=torch.float16) for _ in range(2)]
    table = torch.tensor([[2], [0]], dtype=torch.int32, device="cuda")
    paged = flash_attn_with_kvcache(query, *pages, *fresh, cache_seqlens=lengths, block_table=table)
    for cache, page, new in zip(caches, pages, fresh, strict=True):
        for b, (length, where) in enumerate(((3, 2), (0, 0))):
            require(torch.equal(cache[b, length], new[b, 0]), f"row {b} was not written")
            require(torch.equal(page[where, length], new[b, 0]), f"page {where} was not written")
        written = int((cache != 0).any(-1).any(-1).sum())
        require(written == len(lengths), f"{written} positions were written")
    # The second sequence sees its one new value; the first sees it among three empty positions.
    require_same(rows[1], fresh[1][1].repeat_interleave(2, 1).double(), "one key", torch.float16)
    require_same(paged, rows.double(), "pages", torch.float16)


@_fast("CM-ATTN-023", requires=("attn.sliding_window",))
def a_window_moves_with_the_query(_subject: Subject) -> None:
    """A window of the fused kernel MUST count from the query's position among the keys.

    Fix: give the window in the kernel's own terms: both ends inclusive, from the bottom right.
    """
    require_fused(Case(queries=9, keys=9, window=(2, 0), causal=True))
    require_fused(Case(queries=4, keys=9, window=(3, 1)))


@_fast("CM-ATTN-024", requires=("attn.softcap",))
def scores_are_capped(_subject: Subject) -> None:
    """The fused kernel MUST cap scores after scaling and before the mask.

    Fix: s becomes cap * tanh(s / cap), with s the scaled product.
    """
    require_fused(Case(softcap=CAP, causal=True))


@_fast("CM-ATTN-025", requires=("attn.alibi",))
def biases_grow_with_distance(_subject: Subject) -> None:
    """Position biases of the fused kernel MUST be subtracted after scaling, by head and by batch.

    Fix: the distance is abs(i + keys - queries - j); a kernel that adds its bias before scaling
    needs it divided by the scale.
    """
    require_fused(Case(queries=4, keys=9, alibi="heads", causal=True))
    require_fused(Case(queries=4, keys=9, alibi="batch"))


@_fast("CM-ATTN-026", requires=("attn.flash_attn_import",))
def logarithms_are_returned(_subject: Subject) -> None:
    """With return_attn_probs, the logarithm of the sum of exponentials MUST be returned in float32.

    Fix: list ``lse`` only if the kernel returns it: natural logarithm, (batch, heads, queries).
    """
    import torch
    from flash_attn import flash_attn_func

    for case in (_LONGER, Case(causal=True, key_heads=2)):
        given = [tensor.half().cuda() for tensor in case.tensors()]
        _, lse, _ = flash_attn_func(
            *given, causal=case.causal, alibi_slopes=slopes_on(case), return_attn_probs=True
        )
        exact = [tensor.half().double() for tensor in case.tensors()]
        _, wanted = reference(case, exact[0], exact[1], exact[2])
        require(lse.dtype == torch.float32, f"the logarithms have {lse.dtype}")
        require_same(lse, wanted, "the logarithms", torch.float16)


@_fast("CM-ATTN-027", requires=("attn.transformers",))
def transformers_runs(subject: Subject) -> None:
    """A model of transformers MUST run with flash_attention_2 and give what eager gives on the CPU.

    Fix: nothing is asked of the plugin beyond a kernel that takes bfloat16, a causal mask and fewer
    key heads than query heads.
    """
    try:
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError as error:
        raise NotRun(f"transformers cannot be imported: {error}") from error
    import torch

    ids = torch.arange(1, 12)[None]

    def logits(implementation: str, device: str) -> Any:
        config = LlamaConfig(
            vocab_size=32, hidden_size=32, intermediate_size=48, num_hidden_layers=1,
            num_attention_heads=4, num_key_value_heads=2, attn_implementation=implementation,
        )  # fmt: skip
        torch.manual_seed(0)
        model = LlamaForCausalLM(config).to(torch.bfloat16).eval().to(device)
        with torch.no_grad():
            return model(input_ids=ids.to(device)).logits

    wanted = logits("eager", "cpu")
    # Of some adapters transformers calls the operators itself, and asks nobody for a kernel.
    own = "transformers" in subject.backend().native_libraries
    out = require_fused.entry(lambda: logits("flash_attention_2", "cuda"), "", unasked=own)
    require_same(out, wanted.double(), "the logits", torch.bfloat16)
