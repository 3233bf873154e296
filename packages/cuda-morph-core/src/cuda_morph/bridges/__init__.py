"""Bridges: PyTorch's own extension points, used instead of patches wherever there is one.

The bridges import torch, so this package is imported at activation, or when torch is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_morph.bridges import (
    autocast,
    build_facts,
    compile_torchscript,
    distributed,
    dlpack,
    dtype_policy,
    dynamo,
    library,
    module_conversion,
    profiler,
    serialization,
    storages,
    vendor_errors,
)

if TYPE_CHECKING:
    from cuda_morph.device.layer import LayerContext
    from cuda_morph.interception.tier import Target


def apply(context: LayerContext, target: Target) -> None:
    """Applies every bridge that the target needs; all changes go to the context's journal."""
    serialization.apply(context, target)
    storages.apply(context.journal, target)
    dlpack.apply(context.journal, target)
    build_facts.apply(context.journal, target.policy)
    dtype_policy.apply(context, target)
    autocast.apply(context.journal, target)
    module_conversion.apply(context.journal, target)
    distributed.apply(context, target)
    profiler.apply(context.journal, target)
    dynamo.apply(context.journal, target)
    library.apply(context.journal, target)
    compile_torchscript.apply(context.journal)
    vendor_errors.apply(context.journal, context.plugin)
    if target.device_type == "cpu":
        from cuda_morph.bridges import functional_tensor, random_state, record_stream

        random_state.apply(context.journal)
        record_stream.apply(context.journal)
        functional_tensor.apply(context.journal, target)
