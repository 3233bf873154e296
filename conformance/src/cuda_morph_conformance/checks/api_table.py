"""Every name of ``torch.cuda``: each row of the API table does what the table says."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import warnings
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cuda_morph.errors import MorphError
from cuda_morph.records import Treatment
from cuda_morph_conformance.api_calls import calls
from cuda_morph_conformance.expectations import same_device, same_random_numbers
from cuda_morph_conformance.registry import CheckFailed, NotRun, check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from cuda_morph.api_table import ApiRow
    from cuda_morph_conformance.subject import Subject

STUB_NOTICE = "is only a stub"
_TYPED = ("Tensor", "Storage")
_MODULES = (
    *("amp", "comm", "gds", "graphs", "green_contexts", "jiterator", "memory", "nccl", "nvtx"),
    *("profiler", "random", "sparse", "streams", "tunable"),
)


def area_of(row: ApiRow) -> str:
    """Returns the part of the table that a row is in; each part has a check."""
    if row.name.startswith("torch._C."):
        return "torch._C"
    module = row.name.split(".")[2]
    if module in _MODULES:
        return module
    if module.endswith(_TYPED):
        return "types"
    words = module.lower()
    memory = ("memory", "mem_", "alloc", "cache", "mempool", "mem_pool")
    if any(word in words for word in memory) and row.treatment is not Treatment.ALIAS:
        return "memory"
    if any(word in words for word in ("stream", "event", "graph")):
        return "streams"
    if any(word in words for word in ("seed", "rng", "generators")):
        return "random"
    return "devices"


@check("CM-API-001", level=Level.RUNS, since="1.0", devices=1)
def device_rows_answer(subject: Subject) -> None:
    """The device functions of torch.cuda MUST do what the API table says.

    Fix: give the device module the function that the message names, or a ``DeviceRuntime``.
    """
    walk(subject, "devices")


@check("CM-API-002", level=Level.RUNS, since="1.0", devices=1)
def memory_rows_answer(subject: Subject) -> None:
    """The memory functions of torch.cuda and torch.cuda.memory MUST do what the API table says.

    Fix: give the device module ``memory_stats``, ``mem_get_info`` and their like, in bytes.
    """
    walk(subject, "memory")


@check("CM-API-003", level=Level.RUNS, since="1.0", devices=1)
def stream_rows_answer(subject: Subject) -> None:
    """The stream, event and graph names of torch.cuda MUST do what the API table says.

    Fix: register the device guard's stream functions, from which torch.Stream is answered.
    """
    walk(subject, "streams")
    walk(subject, "graphs")


@check("CM-API-004", level=Level.RUNS, since="1.0", devices=1)
def random_rows_answer(subject: Subject) -> None:
    """The random functions of torch.cuda and torch.cuda.random MUST do what the API table says.

    Fix: list the default generator of each device in ``default_generators``.
    """
    walk(subject, "random")


@check("CM-API-005", level=Level.RUNS, since="1.0", devices=1)
def amp_rows_answer(subject: Subject) -> None:
    """The names of torch.cuda.amp MUST do what the API table says.

    Fix: give the device module ``get_amp_supported_dtype``, which autocast asks.
    """
    walk(subject, "amp")


@check("CM-API-006", level=Level.RUNS, since="1.0", devices=1)
def comm_rows_answer(subject: Subject) -> None:
    """The names of torch.cuda.comm and torch.cuda.nccl MUST do what the API table says.

    Fix: make copies between devices work; core composes these functions of them.
    """
    walk(subject, "comm")
    walk(subject, "nccl")


@check("CM-API-007", level=Level.RUNS, since="1.0", devices=1)
def profiling_rows_answer(subject: Subject) -> None:
    """The names of torch.cuda.nvtx and torch.cuda.profiler MUST do what the API table says.

    Fix: nothing in the plugin; core answers them with PyTorch's profiler.
    """
    walk(subject, "nvtx")
    walk(subject, "profiler")


@check("CM-API-008", level=Level.RUNS, since="1.0", devices=1)
def library_rows_answer(subject: Subject) -> None:
    """torch.cuda.tunable, gds, green_contexts, jiterator, sparse, streams MUST follow the table.

    Fix: nothing in the plugin; core answers, stubs or refuses them.
    """
    for area in ("tunable", "gds", "green_contexts", "jiterator", "sparse", "streams"):
        walk(subject, area)


@check("CM-API-009", level=Level.RUNS, since="1.0", devices=1)
def c_rows_answer(subject: Subject) -> None:
    """The functions of torch._C that torch.cuda's own code calls MUST do what the API table says.

    Fix: give the device module the function that the message names, or a ``DeviceRuntime``.
    """
    walk(subject, "torch._C")


@check("CM-API-010", level=Level.RUNS, since="1.0", devices=1)
def types_exist(subject: Subject) -> None:
    """The legacy types and storages of torch.cuda MUST exist, as classes that isinstance takes.

    Fix: nothing in the plugin; core supplies the classes.
    """
    import torch

    there = torch.ones(1, device="cuda")
    for row in rows(subject):
        if row.name.rpartition(".")[2].endswith(_TYPED) and row.treatment is not Treatment.ALIAS:
            found = resolve(row.name)
            matches = isinstance(there, found)
            right = row.name == "torch.cuda.FloatTensor"
            require(matches == right, f"isinstance(a float32 tensor, {row.name}) is {matches}")


@check("CM-API-011", level=Level.RUNS, since="1.0", devices=1)
def aliases_are_pytorchs_own(subject: Subject) -> None:
    """Names that the table calls aliases MUST be there, and be PyTorch's device-neutral objects.

    Fix: do not replace them in the adapter.
    """
    import torch

    for row in rows(subject):
        if row.treatment is Treatment.ALIAS:
            resolve(row.name)
    cuda = torch.cuda
    require(cuda.OutOfMemoryError is torch.OutOfMemoryError, "OutOfMemoryError is another class")
    require(cuda.AcceleratorError is torch.AcceleratorError, "AcceleratorError is another class")
    require(issubclass(cuda.Stream, torch.Stream), f"Stream is {cuda.Stream}")
    require(issubclass(cuda.Event, torch.Event), f"Event is {cuda.Event}")
    require(cuda.Stream is cuda.streams.Stream, "torch.cuda.streams.Stream is another class")
    require(cuda.random.Tensor is torch.Tensor, "torch.cuda.random.Tensor is another class")


@check("CM-API-012", level=Level.RUNS, since="1.0", devices=1, fresh=True)
def stubs_warn_once(subject: Subject) -> None:
    """Each call without effect MUST warn at its first use in an activation, saying why.

    Fix: nothing in the plugin; core gives the notice.
    """
    subject.need_device()
    with subject.activate():
        table, notices = calls(), list[str]()
        stubs = [row for row in rows(subject) if row.treatment is Treatment.STUB]
        for row in stubs:
            notices += _notices_of(row, table[row.name.removeprefix("torch.")])
        for row in stubs:
            given = [text for text in notices if row.note in text]
            require(given, f"{row.name} never said: {row.note}")


@check("CM-API-013", level=Level.RUNS, since="1.0", devices=1)
def functions_keep_their_identity(subject: Subject) -> None:
    """Functions of torch.cuda MUST keep their names, modules, documentation and signatures.

    Fix: nothing in the plugin; remove wrappers of ``torch.cuda`` from the adapter's patches.
    """
    import torch

    for name in ("synchronize", "memory_allocated", "device_count", "current_stream"):
        function = getattr(torch.cuda, name)
        require(function.__name__ == name, f"torch.cuda.{name} is called {function.__name__}")
        require(function.__module__.startswith("torch.cuda"), f"{name} is of {function.__module__}")
        require(function.__doc__, f"torch.cuda.{name} has no documentation")
        takes_device = "device" in inspect.signature(function).parameters
        require(takes_device == (name != "device_count"), f"signature of torch.cuda.{name}")
    absent = [name for name in torch.cuda.__all__ if not hasattr(torch.cuda, name)]
    require(not absent, f"torch.cuda.__all__ lists {', '.join(absent)}, which it does not have")
    require(len(rows(subject)) > len(torch.cuda.__all__), "the table is shorter than torch.cuda")


def rows(subject: Subject) -> tuple[ApiRow, ...]:
    """Returns the rows in force.

    Raises:
        NotRun: Nothing is redirected, since real CUDA answers.
    """
    with subject.activate() as activation:
        if not activation.rows:
            raise NotRun(f"tier {activation.tier}: PyTorch's own torch.cuda answers")
        return activation.rows


def walk(subject: Subject, area: str) -> None:
    """Exercise each row of one part of the table.

    Args:
        subject: The plugin, which is active.
        area: A part, see `area_of`.

    Raises:
        CheckFailed: Rows do not do what the table says; the message lists them.
    """
    table = calls()
    with same_device(), same_random_numbers(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [row for row in rows(subject) if area_of(row) == area]
        problems = [f"{row.name}: {text}" for row in found if (text := _problem(row, table))]
    require(found, f"the table has no rows of {area}")
    require(not problems, f"{len(problems)} of {len(found)} rows; {'; '.join(problems[:6])}")


def resolve(name: str) -> Any:
    """Returns the object of that qualified name.

    Raises:
        CheckFailed: There is none.
    """
    import torch

    parts = name.split(".")
    if len(parts) > 2 and parts[2] in _MODULES:  # noqa: PLR2004 - torch.cuda.<module>
        # As programs do: PyTorch imports not all of them by itself.
        importlib.import_module(".".join(parts[:3]))
    try:
        return functools.reduce(getattr, parts[1:], torch)
    except AttributeError as error:
        raise CheckFailed(f"{name} is missing: {error}") from None


def _problem(row: ApiRow, table: Any) -> str:
    """Returns what is wrong with a row, or an empty text."""
    try:
        target = resolve(row.name)
        if row.treatment is Treatment.ALIAS or row.kind == "variable":
            return ""
        if isinstance(target, ModuleType):
            return "" if sys.modules.get(row.name) is target else "import finds another module"
        if row.treatment is Treatment.REFUSE:
            return _wrong_refusal(row, target)
        if row.name.endswith(_TYPED):
            return "" if isinstance(target, type) else "it is no class"
        if row.treatment is Treatment.STUB:
            _notices_of(row, table[row.name.removeprefix("torch.")])
            return ""
        call, kind = table[row.name.removeprefix("torch.")]
        result = call(target)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what the row does
        return f"raised {type(error).__name__}: {str(error)[:160]}"
    return "" if isinstance(result, kind) else f"returned {str(result)[:80]!r}"


def _wrong_refusal(row: ApiRow, target: Any) -> str:
    try:
        if row.name.endswith((".graph", ".use_mem_pool")):
            result = _entered(target)
        else:
            result = target(*_needed(target))
    except MorphError as error:
        return _wrong_text(row, error)
    return f"it is refused, and returned {str(result)[:80]!r}"


def _needed(target: Any) -> list[int]:
    """Returns a value for each parameter that has no default."""
    try:
        parameters = inspect.signature(target).parameters.values()
    except ValueError:
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [1 for item in parameters if item.kind in kinds and item.default is item.empty]


def _entered(target: Any) -> object:
    with target(None) as result:
        return result


def _wrong_text(row: ApiRow, error: MorphError) -> str:
    text = str(error)
    absent = [part for part in ("CM-E", row.note, row.replacement) if part not in text]
    return f"its refusal lacks {absent[0]!r}: {text[:160]}" if absent else ""


def _notices_of(row: ApiRow, call: Any) -> list[str]:
    """Calls a stub twice and returns its notices.

    Raises:
        CheckFailed: It gave a notice the second time.
    """
    target = resolve(row.name)
    given: list[list[str]] = []
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = call[0](target)
        require(isinstance(result, call[1]), f"{row.name} returned {result!r}")
        texts = [str(item.message) for item in caught]
        given.append([text for text in texts if STUB_NOTICE in text])
    require(not given[1], f"{row.name} gave its notice a second time")
    return given[0]
