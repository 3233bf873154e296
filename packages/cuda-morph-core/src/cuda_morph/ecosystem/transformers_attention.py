"""transformers: flash_attention_2 on the active backend, and this backend's attention by name.

Two things in transformers look for CUDA by name before they use ``flash_attn``; both are changed
when the library is imported, and put back at deactivation. Besides, the official registry gets the
entry ``cuda_morph``: attention with explicit masks, through the plugin's kernel. Existing entries
stay as they are. An adapter that transformers knows itself keeps transformers' own branch.
"""

from __future__ import annotations

import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any

from cuda_morph.import_watch import after_import
from cuda_morph.records import Patch

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.patching import Journal

KEY = "cuda_morph"
"""Name of the entry in transformers' registry: ``attn_implementation="cuda_morph"``."""

_CHECKS = "transformers.utils.import_utils"
_FLASH = "transformers.modeling_flash_attention_utils"
_MODELS = "transformers.modeling_utils"
_MASKS = "transformers.masking_utils"
_TESTED = range(5, 6)
"""Major versions of transformers that this was made for."""
_OLDEST_FLASH = (2, 3, 3)
"""What transformers asks for."""


def _accepts_any_accelerator(original: Callable[..., bool]) -> Callable[..., bool]:
    """Returns the check without its look at CUDA: a findable flash_attn of the right version."""

    def check(*arguments: Any, **options: Any) -> bool:
        return bool(original(*arguments, **options)) or _flash_version() >= _OLDEST_FLASH

    return check


PATCH = Patch(
    target=f"{_CHECKS}.is_flash_attn_2_available",
    when="transformers>=5,<6",
    why="It is true on CUDA and two named vendors only, though flash_attn can be imported.",
    how="The check is asked first; where it says no, the version of flash_attn decides. "
    "The list of devices for flash_attention_2 gets the active device type.",
    upstream="https://github.com/huggingface/transformers/issues/39844",
    remove_when="transformers asks torch.accelerator instead of naming vendors",
    replacement=_accepts_any_accelerator,
)


def adapt(journal: Journal, device_type: str) -> None:
    """Adapts transformers, whose checks have just been imported, until a rollback.

    Args:
        journal: Journal of the activation.
        device_type: The active device type.
    """
    if _is_tested():
        _open_gate(journal)
        journal.on_rollback(after_import(_FLASH, lambda: _add_device(journal, device_type)))
        journal.on_rollback(after_import(_MODELS, lambda: _register(journal)))
        journal.on_rollback(after_import(_MASKS, lambda: _register_mask(journal)))


def _is_tested() -> bool:
    version: str = getattr(sys.modules.get("transformers"), "__version__", "")
    major = version.partition(".")[0]
    return major.isdigit() and int(major) in _TESTED


def _flash_version() -> tuple[int, ...]:
    try:
        version = metadata.version("flash_attn")
    except metadata.PackageNotFoundError:
        return ()
    numbers = version.partition("+")[0].split(".")
    return tuple(int(number) for number in numbers if number.isdigit())


def _open_gate(journal: Journal) -> None:
    """Exchanges the body of the check and forgets what was found out in the other state."""
    module = sys.modules[_CHECKS]
    names = (
        "is_flash_attn_2_available",
        "is_flash_attn_greater_or_equal",
        "is_torch_cuda_available",
        "_package_distribution_mapping",
    )
    for name in names:
        forget = getattr(getattr(module, name, None), "cache_clear", None)
        if forget is not None:
            forget()
            journal.on_rollback(forget)
    cached = getattr(module, "is_flash_attn_2_available", None)
    function = getattr(cached, "__wrapped__", None)
    if function is None:
        return
    # The exchange gives the original, which the check needs, so it is handed over afterwards.
    originals: list[Callable[..., bool]] = []
    check = PATCH.replacement(
        lambda *given, **options: originals[0](*given, **options)  # noqa: PLW0108 - not there yet
    )
    originals.append(journal.redirect_function(function, check))


def _add_device(journal: Journal, device_type: str) -> None:
    """Lets a model on the CPU be made for flash attention, as on a machine with CUDA."""
    module = vars(sys.modules[_FLASH])
    row = module.get("FLASH_ATTENTION_COMPATIBILITY_MATRIX", {}).get(2)
    if row is not None:
        devices = (*row.get("supported_devices", ()), (lambda: True, device_type))
        journal.set_item(row, "supported_devices", devices)
    if "_loaded_implementation" in module:
        # The functions that it keeps belong to this activation.
        journal.set_item(module, "_loaded_implementation", None)


def _register(journal: Journal) -> None:
    interface = getattr(sys.modules[_MODELS], "AttentionInterface", None)
    if interface is not None:
        journal.set_item(interface._global_mapping, KEY, attention_forward)


def _register_mask(journal: Journal) -> None:
    """Models import the masks' module, transformers itself need not."""
    masks = getattr(sys.modules[_MASKS], "AttentionMaskInterface", None)
    if masks is not None:
        journal.set_item(masks._global_mapping, KEY, masks._global_mapping["sdpa"])


def attention_forward(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    softcap: float | None = None,
    **more: Any,
) -> tuple[Any, None]:
    """Computes attention for a model of transformers.

    Args:
        module: The attention layer.
        query: (B, H, Sq, D).
        key: (B, Hk, Sk, D).
        value: (B, Hk, Sk, Dv).
        attention_mask: Boolean, true keeps; ``None``: causal, if the layer is.
        dropout: Probability of dropping.
        scaling: Factor on the scores; ``None``: one over the root of D.
        is_causal: ``None``: what the layer says.
        softcap: Cap of the scores.
        more: What other implementations take; attention sinks are refused.

    Returns:
        Output (B, Sq, H, Dv), and ``None`` for the probabilities.

    Raises:
        NotImplementedError: The mask is not boolean, or there are attention sinks.
    """
    from cuda_morph.ecosystem.attention import Options, attend

    if more.get("s_aux") is not None:
        raise NotImplementedError("attn_implementation='cuda_morph' has no attention sinks")
    mask = attention_mask
    if mask is not None:
        if not mask.dtype.is_floating_point and mask.dtype.itemsize == 1:
            mask = mask[..., : key.shape[2]].bool()
        else:
            raise NotImplementedError("attn_implementation='cuda_morph' takes boolean masks")
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    options = Options(
        scale=float(query.shape[-1] ** -0.5 if scaling is None else scaling),
        causal=mask is None and query.shape[2] > 1 and bool(causal),
        softcap=float(softcap or 0.0),
        mask=mask,
        dropout_p=float(dropout),
    )
    q, k, v = (part.transpose(1, 2) for part in (query, key, value))
    return attend(q, k, v, options)[0], None
