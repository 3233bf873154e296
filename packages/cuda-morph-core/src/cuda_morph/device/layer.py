"""Puts the device runtime under ``torch.cuda``, row by row of the API table."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is
import torch.cuda.amp  # noqa: TID253

from cuda_morph import api_table
from cuda_morph.device import c_functions, legacy_types, library_settings, on_demand, treatments
from cuda_morph.device.answers import answers
from cuda_morph.device.treatments import refusal
from cuda_morph.frozen_record import frozen_record
from cuda_morph.records import Treatment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cuda_morph.api_table import ApiRow
    from cuda_morph.device.answers import Answer
    from cuda_morph.device.protocol import DeviceRuntime
    from cuda_morph.device.treatments import Notices
    from cuda_morph.patching import Journal
    from cuda_morph.records import Backend
    from cuda_morph.views import ViewPolicy


@frozen_record
class LayerContext:
    """What the layer is built from."""

    journal: Journal
    runtime: DeviceRuntime
    policy: ViewPolicy
    backend: Backend
    plugin: str
    """Name of the plugin that the backend comes from."""
    count_calls: Callable[[str, Answer], Answer]
    """Wraps an answer so that its calls are counted, or returns it as it is."""


def apply(context: LayerContext) -> tuple[ApiRow, ...]:
    """Supplies everything ``torch.cuda`` needs and returns the rows that were applied.

    Raises:
        Exception: Whatever goes wrong; the caller rolls the journal back.
    """
    notices = treatments.Notices()
    _supply_c_functions(context, notices)
    _supply_state(context, notices)
    _redirect_functions(context)
    taken = _adapter_names(context)
    originals = _refuse_names(context, taken)
    _refuse_cuda_source(context)
    _refuse_pointers(context)
    library_settings.apply(context.journal, context.policy, notices)
    on_demand.apply(context.journal, context.runtime)
    legacy_types.apply(context.journal)
    _run_queued_calls()
    if not taken:
        return api_table.load()
    from cuda_morph.device import adapter_names

    return adapter_names.rows(taken, originals)


def _adapter_names(context: LayerContext) -> Mapping[str, Any]:
    """Returns what the adapter has for names that are refused otherwise."""
    if context.backend.simulated or context.backend.device_type == "cpu":
        return {}
    from cuda_morph.device import adapter_names

    return adapter_names.find(context)


def _supply_c_functions(context: LayerContext, notices: Notices) -> None:
    supplied: dict[str, Answer] = {}
    rows = api_table.by_name()
    for name, function in c_functions.c_functions(context.runtime).items():
        row = rows.get(f"torch._C.{name}")
        if row is not None and row.treatment is Treatment.STUB:
            function = treatments.stub(treatments.public_name(name), row.note, function, notices)  # noqa: PLW2901
        supplied[name] = context.count_calls(f"torch._C.{name}", function)
    for row in api_table.rows_answered_by("refuse"):
        if row.name.startswith("torch._C."):
            supplied[row.name.rpartition(".")[2]] = _refused_c_name(context, row)
    context.journal.update_mapping(vars(torch._C), supplied)
    for module in _cuda_modules():
        # Names that a module of torch.cuda imported from torch._C before we came.
        early = {name: supplied[name] for name in vars(module).keys() & supplied.keys()}
        if early:
            context.journal.update_mapping(vars(module), early)


def _refused_c_name(context: LayerContext, row: ApiRow) -> Answer:
    if row.kind == "class":
        return treatments.refused_class(context, row)
    refuse = refusal(row.name, row.note, row.replacement, context.backend)
    return context.count_calls(row.name, refuse)


def _cuda_modules() -> Iterable[types.ModuleType]:
    return [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("torch.cuda.") and isinstance(module, types.ModuleType)
    ]


def _supply_state(context: LayerContext, notices: Notices) -> None:
    journal, runtime = context.journal, context.runtime
    state: dict[str, Any] = {
        "_initialized": True,
        "_cudart": c_functions.cudart(runtime, notices, _refused_runtime(context)),
        "_get_device_properties": runtime.properties,
        "_cached_device_count": None,
        "default_generators": runtime.default_generators(),
        "get_amp_supported_dtype": runtime.autocast_dtypes,
        "Stream": runtime.stream_class,
        "Event": runtime.event_class,
    }
    journal.update_mapping(vars(torch.cuda), state)
    for name in ("Stream", "Event"):
        journal.set_attribute(torch.cuda.streams, name, state[name])
        for module in (torch.cuda.graphs, torch.cuda.memory, torch.cuda.green_contexts):
            if name in vars(module):
                journal.set_attribute(module, name, state[name])
    _early_stream_classes(context)
    for owner, name, value in _HANDLES:
        if not hasattr(owner, name):
            journal.set_type_attribute(owner, name, value)


_HANDLES = (
    (torch.Stream, "cuda_stream", property(lambda stream: stream.stream_id)),
    (torch.Stream, "priority", 0),
    (torch.Stream, "priority_range", staticmethod(lambda: (0, 0))),
    (torch.Event, "cuda_event", property(lambda event: event.event_id)),
)
"""Attributes that CUDA's classes have beyond the device-neutral ones; the handles are numbers that
tell streams and events apart, not pointers, and all streams have one priority."""


def _refused_runtime(context: LayerContext) -> Callable[[str], Answer]:
    def refuse(name: str) -> Answer:
        reason = "It works on pointers of the CUDA runtime."
        return refusal(name, reason, "torch.cuda.Stream", context.backend)

    return refuse


def _early_stream_classes(context: LayerContext) -> None:
    """Makes classes that were imported before activation build the runtime's objects."""
    journal, runtime = context.journal, context.runtime
    for name, new in (("Stream", runtime.stream_class), ("Event", runtime.event_class)):
        original = _ORIGINAL_CLASSES[name]
        constructor = vars(original)["__new__"].__func__
        journal.redirect_function(constructor, _Constructor(new))


_ORIGINAL_CLASSES = {"Stream": torch.cuda.streams.Stream, "Event": torch.cuda.streams.Event}


class _Constructor:
    """Stands for ``__new__`` of an early imported class; returns the runtime's own object."""

    __slots__ = ("_new",)

    def __init__(self, new: type) -> None:
        self._new = new

    def __call__(self, _cls: type, *args: Any, **kwargs: Any) -> Any:
        return self._new(*args, **kwargs)


def _functions(name: str) -> list[types.FunctionType]:
    """Returns the plain functions behind a qualified name, following ``@deprecated``."""
    target: Any = torch
    for part in name.split(".")[1:]:
        target = getattr(target, part, None)
    found = []
    while isinstance(target, types.FunctionType):
        found.append(target)
        target = getattr(target, "__wrapped__", None)
    return found


def _classes(name: str) -> list[type]:
    target: Any = torch
    for part in name.split(".")[1:]:
        target = getattr(target, part, None)
    return [target] if isinstance(target, type) else []


def _redirect_functions(context: LayerContext) -> None:
    table = answers(context.runtime, context.policy, context.backend)
    done: set[int] = set()
    for short, answer in table.items():
        name = f"torch.cuda.{short}"
        functions = _functions(name)
        if not functions and short in vars(torch.cuda):
            # A CUDA build has C functions here, without a body to exchange.
            context.journal.set_attribute(torch.cuda, short, _distinct(answer))
        if not functions:
            continue  # or a version of PyTorch without that name, which needs no redirect
        innermost = functions[-1]
        if id(innermost) in done:
            continue
        done.add(id(innermost))
        counted = answer if short.startswith("_") else context.count_calls(name, answer)
        context.journal.redirect_function(innermost, counted)


def _distinct(answer: Answer) -> Answer:
    """Returns a function of its own: Dynamo refuses one object under two names."""

    def call(*args: Any) -> Any:
        return answer(*args)

    return call


def _refuse_names(context: LayerContext, taken: Mapping[str, Any]) -> dict[str, Any]:
    """Refuses names, or lets the adapter answer, and returns PyTorch's own objects by name."""
    rows = [row for row in api_table.rows_answered_by("refuse") if "torch.cuda." in row.name]
    stubs = [row for row in api_table.load() if taken and row.treatment is Treatment.STUB]
    originals: dict[str, Any] = {}
    for row in (*rows, *stubs):
        for found in _functions(row.name)[-1:] or _classes(row.name):
            originals[row.name] = found
    due = rows + [row for row in stubs if row.name in taken]
    done: set[int] = set()
    # An object with several names is refused under the shortest.
    for row in sorted(due, key=lambda row: row.name.count(".")):
        target = originals.get(row.name)
        if target is None or id(target) in done:
            continue
        done.add(id(target))
        if row.name in taken:
            from cuda_morph.device import adapter_names

            adapter_names.take_over(context, row.name, target, taken[row.name])
        elif isinstance(target, type):
            treatments.refuse_class(context, target, row)
        else:
            refuse = refusal(row.name, row.note, row.replacement, context.backend)
            counted = context.count_calls(row.name, refuse)
            context.journal.redirect_function(target, counted)
    return originals


def _refuse_cuda_source(context: LayerContext) -> None:
    """Refuses kernels in CUDA source in every view: PyTorch asks for CUDA before it comes to us."""
    row = api_table.by_name()["torch._C._cuda_jiterator_compile_and_launch_kernel"]
    refuse = refusal("torch.cuda.jiterator", row.note, row.replacement, context.backend)
    context.journal.redirect_function(torch.cuda.jiterator._JittedFunction.__call__, refuse)


def _refuse_pointers(context: LayerContext) -> None:
    """Gives no address away as one of CUDA's memory: a CUDA library would read there.

    PyTorch shows ``Tensor.__cuda_array_interface__`` where ``is_cuda`` is True. An AttributeError
    tells libraries that the tensor has none, as it has not on the host.
    """
    display_name = context.backend.display_name

    def no_pointer(_tensor: Any) -> Any:
        raise AttributeError(
            f"Memory of {display_name} is no CUDA memory: there is no __cuda_array_interface__. "
            "Use torch.from_dlpack, or tensor.cpu() for the host."
        )

    described = vars(torch.Tensor)["__cuda_array_interface__"]
    context.journal.redirect_function(described.fget, no_pointer)


_TORCH_OWN = frozenset({"_check_capability", "_check_cubins", "_register_triton_kernels"})
"""What torch.cuda queues for itself; none of it concerns another vendor's device."""

_calls_done: list[Any] = []
"""Kept for the life of the process, as PyTorch's own list is."""


def _run_queued_calls() -> None:
    """Runs calls that were queued until CUDA initialises and have not run yet in this process.

    Seeds set before activation are among them. PyTorch runs them when CUDA initialises, once per
    process; seeds come last, as there.
    """
    tracker = torch.cuda._lazy_seed_tracker
    queued = [*torch.cuda._queued_calls, *(call for call in tracker.get_calls() if call)]
    for call, _traceback in queued:
        if getattr(call, "__name__", "") in _TORCH_OWN or any(call is seen for seen in _calls_done):
            continue
        _calls_done.append(call)
        call()
