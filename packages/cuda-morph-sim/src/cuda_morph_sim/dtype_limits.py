"""Dtypes that an adapter refuses or stores narrower, told to the native half of the device."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded by the loader only, when torch already is

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cuda_morph_sim.pose import Pose

OUT_OF_MEMORY = "out_of_memory"


def apply(pose: Pose, native: Any) -> None:
    """Set the limits of a simulated adapter, and what it says when memory runs out.

    Args:
        pose: The plugin's records.
        native: The native half of the device.
    """
    personality = pose.personality
    absent = {
        dtype: f"{pose.device_name} has no tensors of dtype {dtype}"
        for dtype in _dtypes(personality.absent_dtypes)
    }
    kept = {
        dtype
        for variable, dtypes in personality.widening_env.items()
        if os.environ.get(variable, "").lower() == "true"
        for dtype in dtypes
    }
    narrowed = {
        getattr(torch, wide): getattr(torch, narrow)
        for wide, narrow in personality.narrowed_dtypes.items()
        if wide not in kept
    }
    native.set_limits(absent, narrowed, marked(personality.error_texts.get(OUT_OF_MEMORY, "")))


def marked(text: str) -> str:
    """Say in an adapter's error text that it is none of the adapter's.

    Args:
        text: The text as the adapter would give it.

    Returns:
        The text with a mark at its end; no text stays none.
    """
    return f"{text}\n(simulated)" if text else ""


def _dtypes(names: Iterable[str]) -> list[torch.dtype]:
    return [found for name in names if isinstance(found := getattr(torch, name, None), torch.dtype)]
