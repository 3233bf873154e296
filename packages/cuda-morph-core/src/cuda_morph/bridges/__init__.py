"""Bridges: PyTorch's own extension points, used instead of patches wherever there is one.

The bridges import torch, so this package is imported at activation, or when torch is there. Those
that only some targets or plugins need are imported for them.
"""

from __future__ import annotations

import contextlib
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any

import torch.multiprocessing.reductions  # noqa: TID253 - torch is loaded at activation

from cuda_morph.bridges import (
    compiled_code,
    distributed,
    library,
    profiler,
    serialization,
)
from cuda_morph.device.treatments import Notices
from cuda_morph.plugins import get_plugin
from cuda_morph.torch_facts import PRIVATE_USE_ONE

if TYPE_CHECKING:
    from cuda_morph.device.layer import LayerContext
    from cuda_morph.interception import Target
    from cuda_morph.patching import Journal


def apply(context: LayerContext, target: Target, tier: str) -> None:
    """Applies every bridge that the target needs; all changes go to the context's journal."""
    serialization.apply(context, target)
    distributed.apply(context, target)
    profiler.apply(context.journal, target)
    library.apply(context.journal, target)
    compiled_code.apply(context.journal, target)
    _apply_for_target(context, target)
    _apply_for_plugin(context, target, tier)


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
        _copy_to_processes(context.journal)


def _copy_to_processes(journal: Journal) -> None:
    """Lets tensors of the device be sent to other processes; see `process_copies`.

    Official point: ``ForkingPickler.register``. An adapter's own reducer stays.
    """
    own = torch.multiprocessing.reductions.reduce_tensor
    notices = Notices()

    def reduce(tensor: Any) -> Any:
        if tensor.is_cpu or tensor.is_meta:
            return own(tensor)
        from cuda_morph.bridges import process_copies

        return process_copies.reduce_by_copy(tensor, notices)

    reducers = ForkingPickler._extra_reducers  # type: ignore[attr-defined]
    for cls in (torch.Tensor, torch.nn.Parameter):
        if reducers.get(cls) is own:
            journal.set_item(reducers, cls, reduce)


def _apply_for_plugin(context: LayerContext, target: Target, tier: str) -> None:
    hooks = get_plugin(context.plugin).hooks
    if "cuda_morph_dtypes" in hooks:
        from cuda_morph.bridges import dtype_policy

        dtype_policy.apply(context, target)
    if tier == "T0" and "cuda_morph_error_codes" in hooks:
        _watch_errors(context.journal, context.plugin)


def _watch_errors(journal: Journal, plugin: str) -> None:
    """Lets the compiled tier ask what to raise, when an error comes; see `vendor_errors`."""
    from cuda_morph_native import native

    def exception_for(text: str) -> RuntimeError | None:
        from cuda_morph.bridges import vendor_errors

        return vendor_errors.exception_for(text, plugin)

    if not hasattr(native, "watch_errors"):  # an older release of the compiled tier
        return
    journal.on_rollback(native.unwatch_errors)
    with contextlib.suppress(OSError):  # a platform whose offset tables are not known
        native.watch_errors(exception_for)
