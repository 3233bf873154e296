"""Attention over sequences of one length."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded by the first call of attention only

from cuda_morph.ecosystem.attention import composed, kernels, torch_sdpa
from cuda_morph.ecosystem.attention.visibility import slopes_by_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.ecosystem.attention.options import Options
    from cuda_morph.records import AttentionKernel


def attend(query: Any, key: Any, value: Any, options: Options) -> tuple[Any, Any]:
    """Computes attention with the best implementation that gives exactly what is asked for.

    Args:
        query: (B, Sq, H, D).
        key: (B, Sk, Hk, D), where Hk divides H.
        value: (B, Sk, Hk, Dv).
        options: What to compute.

    Returns:
        Output (B, Sq, H, Dv) and, if asked for, the logarithm of the sum of exponentials
        (B, H, Sq), infinite where a query sees no key; ``None`` otherwise.
    """
    queries, keys = query.shape[1], key.shape[1]
    if min(query.numel(), key.numel()) == 0:
        return _nothing_seen(query, value, options)
    options = options.normalised(queries, keys)
    if options.alibi_slopes is not None:
        slopes = slopes_by_batch(options.alibi_slopes, query.shape[0])
        options = replace(options, alibi_slopes=slopes)
    # Mixed precision must not round what is computed here.
    with torch.autocast(query.device.type, enabled=False):
        answer = kernels.first_answer(
            "forward",
            kernels.need(query, key, value, options, *_empty_rows(options, queries, keys)),
            lambda kernel, forward: _call(kernel, forward, (query, key, value), options),
        )
        if answer is not None:
            return _pair(answer, options)
        return _without_kernel(query, key, value, options)


def _without_kernel(query: Any, key: Any, value: Any, options: Options) -> tuple[Any, Any]:
    if torch_sdpa.covers(options, training=kernels.is_training(query, key, value)):
        kernels.count("sdpa")
        return torch_sdpa.attend(query, key, value, options), None
    kernels.count("composed")
    out, lse, _ = composed.attend(query, key, value, options)
    return out, lse if options.return_lse else None


def attend_with_probabilities(
    query: Any, key: Any, value: Any, options: Options
) -> tuple[Any, Any, Any]:
    """Computes attention and shows what dropout did; see `composed.attend` for the results."""
    if min(query.numel(), key.numel()) == 0:
        out, lse = _nothing_seen(query, value, replace(options, return_lse=True))
        return out, lse, query.new_zeros(*lse.shape, key.shape[1])
    kernels.count("composed")
    with torch.autocast(query.device.type, enabled=False):
        return composed.attend(query, key, value, options)


def _empty_rows(options: Options, queries: int, keys: int) -> tuple[str, ...]:
    # What a mask hides is known to the device only, so a mask may always leave a row empty.
    empty = options.mask is not None or options.has_empty_rows(queries, keys)
    return ("empty_rows",) if empty else ()


def _call(
    kernel: AttentionKernel,
    forward: Callable[..., Any],
    tensors: tuple[Any, Any, Any],
    options: Options,
) -> Any:
    if kernel.layouts[0] == "bshd":
        return forward(*tensors, **kernels.arguments(kernel, options))
    answer = forward(
        *(tensor.transpose(1, 2) for tensor in tensors), **kernels.arguments(kernel, options)
    )
    out, lse = _pair(answer, options)
    return out.transpose(1, 2), lse


def _pair(answer: Any, options: Options) -> tuple[Any, Any]:
    """Returns output and logarithms, whichever form the kernel chose."""
    out, lse = answer if isinstance(answer, (tuple, list)) else (answer, None)
    return out, lse if options.return_lse else None


def _nothing_seen(query: Any, value: Any, options: Options) -> tuple[Any, Any]:
    """Returns what attention is without keys, or without queries."""
    shape = (*query.shape[:-1], value.shape[-1])
    always = torch.ones((), dtype=torch.bool, device=query.device)
    # Stays part of the graph, with a gradient of zero.
    out = query.masked_fill(always, 0.0)
    if query.shape != shape:
        out = out.sum(-1, keepdim=True).expand(shape)
    if not options.return_lse:
        return out, None
    work = torch.promote_types(query.dtype, torch.float32)
    batch, queries, heads, _ = query.shape
    lse = torch.full((batch, heads, queries), torch.inf, dtype=work, device=query.device)
    return out, lse
