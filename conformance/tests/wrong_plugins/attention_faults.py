"""Faults of attention kernels: a vendor's conventions taken for PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fault import in_records

Hooks = dict[str, Callable[..., Any]]
HOOK = "cuda_morph_attention_kernels"


def _change(hooks: Hooks, change: Callable[[Any], Any]) -> None:
    right = hooks[HOOK]
    hooks[HOOK] = lambda: (change(kernel) for kernel in right())


def _forward(hooks: Hooks, call: Callable[..., Any]) -> None:
    """Puts `call` in the place of the dense kernel, and hands the right one to it."""

    def change(kernel: Any) -> Any:
        right = kernel.forward
        return replace(kernel, forward=lambda *tensors, **more: call(right, *tensors, **more))

    _change(hooks, change)


@in_records("CM-ATTN-016")
def mask_is_inverted(hooks: Hooks) -> None:
    """The mask hides where it is true, and the record says that it keeps."""
    _change(hooks, lambda kernel: replace(kernel, mask_convention="true_masks"))


@in_records("CM-ATTN-014")
def causal_mask_begins_top_left(hooks: Hooks) -> None:
    """With more keys than queries, the causal mask begins at the first key."""

    def call(right: Any, query: Any, key: Any, value: Any, **options: Any) -> Any:
        biased = options.get("alibi_slopes") is not None
        if options.get("causal") and not biased and key.shape[1] > query.shape[1]:
            seen = query.shape[1]
            key, value = key[:, :seen], value[:, :seen]
        return right(query, key, value, **options)

    _forward(hooks, call)


@in_records("CM-ATTN-012")
def scale_is_ignored(hooks: Hooks) -> None:
    """Scores are always divided by the root of the head's dimension."""

    def call(right: Any, query: Any, *rest: Any, scale: float, **options: Any) -> Any:
        return right(query, *rest, scale=query.shape[-1] ** -0.5, **options)

    _forward(hooks, call)


@in_records("CM-ATTN-017")
def dropout_is_not_seeded(hooks: Hooks) -> None:
    """Dropout draws from a generator of its own, which no seed reaches."""

    def call(right: Any, *tensors: Any, **options: Any) -> Any:
        import torch

        if not options.get("dropout_p"):
            return right(*tensors, **options)
        place = tensors[0].device
        with torch.random.fork_rng(devices=[place.index], device_type=place.type):
            torch.seed()
            return right(*tensors, **options)

    _forward(hooks, call)


@in_records("CM-ATTN-018", "CM-ATTN-027")  # a model with grouped heads shows it too
def key_heads_are_dealt_out(hooks: Hooks) -> None:
    """Query head h uses key head h modulo the number of key heads."""

    def call(right: Any, query: Any, key: Any, value: Any, **options: Any) -> Any:
        copies = query.shape[2] // key.shape[2]
        if not options.get("return_lse"):
            key, value = (tensor.repeat(1, 1, copies, 1) for tensor in (key, value))
        return right(query, key, value, **options)

    _forward(hooks, call)


@in_records("CM-ATTN-023")
def window_is_one_too_wide(hooks: Hooks) -> None:
    """A window's left limit counts the query's own position as the first one beyond it."""

    def call(right: Any, *tensors: Any, **options: Any) -> Any:
        left, ahead = options.get("window", (-1, -1))
        if left >= 0:
            options["window"] = (left + 1, ahead)
        return right(*tensors, **options)

    _forward(hooks, call)


@in_records("CM-ATTN-024")
def scores_are_not_capped(hooks: Hooks) -> None:
    """The limit of scores is accepted and ignored."""

    def call(right: Any, *tensors: Any, **options: Any) -> Any:
        return right(*tensors, **{**options, "softcap": 0.0})

    _forward(hooks, call)


@in_records("CM-ATTN-025")
def position_biases_are_added(hooks: Hooks) -> None:
    """Position biases are added to the scores instead of being subtracted."""

    def call(right: Any, *tensors: Any, **options: Any) -> Any:
        if options.get("alibi_slopes") is not None:
            options["alibi_slopes"] = -options["alibi_slopes"]
        return right(*tensors, **options)

    _forward(hooks, call)


@in_records("CM-ATTN-026")
def logarithms_are_to_base_two(hooks: Hooks) -> None:
    """The logarithm of the sum of exponentials is to base two where each query sees a key."""

    def call(right: Any, query: Any, key: Any, value: Any, **options: Any) -> Any:
        out, lse = right(query, key, value, **options)
        return out, lse / math.log(2) if key.shape[1] >= query.shape[1] else lse

    _forward(hooks, call)


@in_records("CM-ATTN-013")
def keys_get_no_gradient(hooks: Hooks) -> None:
    """Without a mask, and at the usual scale, the keys get no gradient."""

    def call(right: Any, query: Any, key: Any, value: Any, *, scale: float, **options: Any) -> Any:
        usual = abs(scale - query.shape[-1] ** -0.5) < 1e-6
        if usual and not options.get("causal"):
            key = key.detach() + 0 * key
        return right(query, key, value, scale=scale, **options)

    _forward(hooks, call)


@in_records("CM-ATTN-019")
def packed_sequences_see_their_neighbours(hooks: Hooks) -> None:
    """Packed sequences without gradients are computed as one long sequence."""

    def change(kernel: Any) -> Any:
        right = kernel.varlen

        def varlen(query: Any, *rest: Any, **options: Any) -> Any:
            if query.requires_grad:
                return right(query, *rest, **options)
            for name in ("cu_seqlens_q", "cu_seqlens_k"):
                options[name] = options[name][[0, -1]]
            return right(query, *rest, **options)

        return replace(kernel, varlen=varlen)

    _change(hooks, change)
