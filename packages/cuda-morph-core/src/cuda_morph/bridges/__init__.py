"""Bridges: PyTorch's own extension points, used instead of patches wherever there is one.

The bridges import torch, so this package is imported at activation, or when torch is there. Those
that only some targets or plugins need are imported for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_morph.bridges import (
    build_facts,
    compiled_code,
    distributed,
    library,
    profiler,
    serialization,
)
from cuda_morph.plugins import get_plugin
from cuda_morph.torch_facts import PRIVATE_USE_ONE

if TYPE_CHECKING:
    from cuda_morph.device.layer import LayerContext
    from cuda_morph.interception.tier import Target


def apply(context: LayerContext, target: Target) -> None:
    """Applies every bridge that the target needs; all changes go to the context's journal."""
    serialization.apply(context, target)
    build_facts.apply(context.journal, target.policy)
    distributed.apply(context, target)
    profiler.apply(context.journal, target)
    library.apply(context.journal, target)
    compiled_code.apply(context.journal, target)
    _apply_for_target(context, target)
    _apply_for_plugin(context, target)


def _apply_for_target(context: LayerContext, target: Target) -> None:
    if not target.masked:
        from cuda_morph.bridges import own_names

        own_names.apply(context.journal, target)
    if target.device_type == "cpu":
        from cuda_morph.bridges import cpu

        cpu.apply(context.journal, target)
    if target.type_id == PRIVATE_USE_ONE:
        from cuda_morph.bridges import device_module, module_conversion

        module_conversion.apply(context.journal)
        device_module.apply(context, target)


def _apply_for_plugin(context: LayerContext, target: Target) -> None:
    hooks = get_plugin(context.plugin).hooks
    if "cuda_morph_dtypes" in hooks:
        from cuda_morph.bridges import dtype_policy

        dtype_policy.apply(context, target)
    if "cuda_morph_error_codes" in hooks:
        from cuda_morph.bridges import vendor_errors

        vendor_errors.apply(context.journal, context.plugin)
