"""Starting a trace: what is wrapped beyond the answers that the device layer gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch  # noqa: TID253 - loaded for a trace only, when torch already is

from cuda_morph import api_table
from cuda_morph.interception.tensor_attributes import traceable_cuda
from cuda_morph.trace import operators
from cuda_morph.trace.call_sites import SiteFinder
from cuda_morph.trace.function_copy import function_copy
from cuda_morph.trace.recorder import Recorder

if TYPE_CHECKING:
    import types
    from collections.abc import Callable

    from cuda_morph.interception import Target
    from cuda_morph.patching import Journal

TENSOR_CUDA = "torch.Tensor.cuda"
MODULE_CUDA = "torch.nn.Module.cuda"


def new_recorder(adapter: str) -> Recorder:
    """Returns a recorder that has nothing wrapped yet.

    Args:
        adapter: Name of the module of the accelerator's adapter, whose frames are no user's.
    """
    return Recorder(SiteFinder(frozenset({adapter.partition(".")[0]}) - {""}))


def start(journal: Journal, recorder: Recorder, target: Target, tier: str) -> None:
    """Wraps what the device layer does not answer by itself, and watches the operators.

    Args:
        journal: Receives every change.
        recorder: Receives every call.
        target: The accelerator.
        tier: Name of the interception tier in force.
    """
    _wrap_functions_of_torch(journal, recorder)
    recorded = recorder.wrap(TENSOR_CUDA, torch.Tensor.cuda)
    journal.set_attribute(torch.Tensor, "cuda", traceable_cuda(target, recorded))
    _wrap_function(journal, recorder, MODULE_CUDA, torch.nn.Module.cuda)
    if tier == "T0":
        recorder.device_strings = _string_counter()
    operators.watch(journal, recorder, target)


def _wrap_functions_of_torch(journal: Journal, recorder: Recorder) -> None:
    """Wraps the functions of torch.cuda whose own Python code stays in charge."""
    from cuda_morph.device.layer import _functions

    done: set[int] = set()
    rows = [row for row in api_table.rows_answered_by("torch") if row.kind == "function"]
    # An object with several names is recorded under the shortest.
    for row in sorted(rows, key=lambda row: row.name.count(".")):
        for function in _functions(row.name)[-1:]:
            if id(function) not in done:
                done.add(id(function))
                _wrap_function(journal, recorder, row.name, function)


def _wrap_function(
    journal: Journal, recorder: Recorder, name: str, function: types.FunctionType
) -> None:
    redirected = [part for part in function.__code__.co_names if part.startswith("_cuda_morph_")]
    if redirected:  # its body calls an answer of ours: record that
        namespace, alias = function.__globals__, redirected[0]
        journal.set_item(namespace, alias, recorder.wrap(name, namespace[alias]))
    else:
        journal.redirect_function(function, recorder.wrap(name, function_copy(function)))


def _string_counter() -> Callable[[], int]:
    from cuda_morph_native import native

    before = native.redirected_string_count()
    return lambda: native.redirected_string_count() - before
