"""The fused kernels of the active plugin, and which of them covers a call."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from cuda_morph.ecosystem.attention import OFFER
from cuda_morph.frozen_record import frozen_record

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.ecosystem.attention.options import Options
    from cuda_morph.records import AttentionKernel

_answered: Counter[str] = Counter()


def answered() -> dict[str, int]:
    """Returns how many calls each implementation has answered in this process.

    Example:
        ``{"mychip_fused.forward": 12, "sdpa": 2, "composed": 1}``
    """
    return dict(_answered)


def count(name: str) -> None:
    """Notes that an implementation has answered a call."""
    import torch

    if not torch.compiler.is_compiling():
        _answered[name] += 1


@frozen_record
class Need:
    """What a call needs of a kernel."""

    device_type: str
    dtype: str
    head_dim: int
    features: frozenset[str]


def need(query: Any, key: Any, value: Any, options: Options, *extra: str) -> Need:
    """Returns what a kernel must have for a call.

    Args:
        query: Query tensor with heads in the last dimension but one.
        key: Key tensor, likewise.
        value: Value tensor, likewise.
        options: Normalised options.
        extra: Features that depend on more than the options, such as ``empty_rows``.
    """
    features = {*extra, *needed_options(options)}
    if query.shape[-2] != key.shape[-2]:
        features.add("gqa")
    if is_training(query, key, value):
        features.add("backward")
    if key.shape[-1] != value.shape[-1]:
        features.add("value_dim")
    return Need(
        device_type=query.device.type,
        dtype=str(query.dtype).removeprefix("torch."),
        head_dim=query.shape[-1],
        features=frozenset(features),
    )


def is_training(*tensors: Any) -> bool:
    """Returns whether gradients will be asked for."""
    import torch

    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def needed_options(options: Options) -> dict[str, tuple[str, Any]]:
    """Returns the options in use: feature to the keyword argument that carries it."""
    used = {
        "causal": ("causal", options.causal, options.causal),
        "window": ("window", options.window, options.windowed),
        "softcap": ("softcap", options.softcap, options.softcap > 0),
        "alibi": ("alibi_slopes", options.alibi_slopes, options.alibi_slopes is not None),
        "mask": ("mask", options.mask, options.mask is not None),
        "dropout": ("dropout_p", options.dropout_p, options.dropout_p > 0),
        "deterministic": ("deterministic", True, options.deterministic),
        "lse": ("return_lse", True, options.return_lse),
    }
    return {feature: (name, value) for feature, (name, value, asked) in used.items() if asked}


def arguments(kernel: AttentionKernel, options: Options) -> dict[str, Any]:
    """Returns the keyword arguments for a kernel that covers the call."""
    given = dict(needed_options(options).values())
    if options.mask is not None and kernel.mask_convention == "true_masks":
        given["mask"] = ~options.mask
    return {"scale": options.scale, **given}


def first_answer(
    entry: str, wanted: Need, call: Callable[[AttentionKernel, Callable[..., Any]], Any]
) -> Any:
    """Returns the answer of the best kernel that covers a call.

    Args:
        entry: ``forward``, ``varlen`` or ``kvcache``.
        wanted: What the kernel must have.
        call: Calls the kernel's function; receives the record and the function.

    Returns:
        What `call` returned, or ``None`` when no kernel covers the call. A kernel that raises
        ``NotImplementedError`` is passed over.
    """
    if wanted.device_type not in {OFFER.device_type, "cuda"}:
        return None
    for kernel in OFFER.kernels():
        function = getattr(kernel, entry)
        if function is None or not _covers(kernel, wanted):
            continue
        try:
            answer = call(kernel, function)
        except NotImplementedError:
            continue
        count(f"{kernel.name}.{entry}")
        return answer
    return None


def _covers(kernel: AttentionKernel, wanted: Need) -> bool:
    return (
        wanted.dtype in kernel.dtypes
        and wanted.features <= set(kernel.features)
        and (not kernel.head_dims or wanted.head_dim in kernel.head_dims)
        and (not kernel.max_head_dim or wanted.head_dim <= kernel.max_head_dim)
    )
