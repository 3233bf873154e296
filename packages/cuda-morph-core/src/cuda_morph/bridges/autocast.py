"""Casting of ``custom_fwd(device_type="cuda", cast_inputs=...)`` outside the masked cuda view.

Upstream: ``torch/amp/autocast_mode.py`` compares each tensor's device type with the given name, so
tensors of another name would silently not be cast. Can go when PyTorch compares devices there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.interception.tier import Target
    from cuda_morph.patching import Journal


def apply(journal: Journal, target: Target) -> None:
    """Casts by the target's device type where ``cuda`` is asked for."""
    if target.device_type == "cpu":
        _default_to_bfloat16(journal)
    if target.masked:
        return
    cast = _Cast(target.device_type)
    cast.original = journal.redirect_function(torch.amp.autocast_mode._cast, cast)


def _default_to_bfloat16(journal: Journal) -> None:
    """Lets ``torch.cuda.amp.autocast()`` without a dtype use what ``torch.autocast`` uses there.

    PyTorch's default dtype of autocast on the CPU is bfloat16; float16 products are ten times and
    more slower. A dtype that the program names is kept.
    """
    initialiser = vars(torch.cuda.amp.autocast)["__init__"]
    journal.set_defaults(
        initialiser,
        tuple(
            torch.bfloat16 if default is torch.float16 else default
            for default in initialiser.__defaults__
        ),
    )


class _Cast:
    """Stands for ``torch.amp.autocast_mode._cast``."""

    original: Callable[..., Any]

    def __init__(self, device_type: str) -> None:
        self._device_type = device_type

    def __call__(self, value: Any, device_type: str, dtype: Any) -> Any:
        return self.original(
            value, self._device_type if device_type == "cuda" else device_type, dtype
        )
