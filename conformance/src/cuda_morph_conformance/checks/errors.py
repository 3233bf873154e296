"""Failures: the class, the words and what is left afterwards are what CUDA programs expect."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.models import numbers
from cuda_morph_conformance.registry import CheckFailed, check, require
from cuda_morph_conformance.tolerances import require_close
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph_conformance.subject import Subject

_runs = partial(check, level=Level.RUNS, since="1.0", devices=1)
_trains = partial(check, level=Level.TRAINS, since="1.0", devices=1)
_NO_DEVICE = 93


@_runs("CM-ERR-001", requires=("error.out_of_memory",))
def exhaustion_has_its_class(_subject: Subject) -> None:
    """Asking for more memory than the card has MUST raise torch.cuda.OutOfMemoryError.

    Programs that halve their batch catch that class, or look for "out of memory" in the message.

    Fix: raise ``c10::OutOfMemoryError`` (``TORCH_CHECK_WITH(OutOfMemoryError, ...)``) in the
    adapter's allocator, or list its code as ``out_of_memory`` in ``cuda_morph_error_codes``.
    """
    import torch

    error = _raised(_exhaust)
    require(isinstance(error, torch.cuda.OutOfMemoryError), f"it raised {error!r}")
    require(isinstance(error, torch.OutOfMemoryError), "it is no torch.OutOfMemoryError")
    require("out of memory" in str(error).lower(), f"the message is {str(error)[:200]!r}")


@_runs("CM-ERR-002", requires=("error.recovery",))
def work_goes_on_after_exhaustion(_subject: Subject) -> None:
    """After running out of memory, the device MUST compute, and hold no memory of the failed call.

    Fix: leave the allocator's books unchanged by an allocation that fails, and the stream usable.
    """
    import torch

    x = numbers(16, 16).cuda()
    expected = (x * 2).cpu()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for _ in range(3):
        require(isinstance(_raised(_exhaust), RuntimeError), "exhaustion raised no RuntimeError")
    left = torch.cuda.memory_allocated() - before
    # The failed calls asked for twice the card; figures of a host move by some MiB.
    require(left < 1 << 24, f"{left} bytes more are allocated than before")
    require_close((x * 2).cpu(), expected, "a product after three failures")


@_runs("CM-ERR-003", requires=("error.out_of_memory", "error.recovery"))
def freed_memory_is_usable_again(_subject: Subject) -> None:
    """Memory that was filled until nothing fits MUST be usable again once it is freed.

    Fix: let a failing allocation empty the allocator's cache and try again, and ``empty_cache``
    give free blocks back.
    """
    import torch

    size = max(torch.cuda.mem_get_info()[1] // 8, 1)
    blocks: list[Any] = []
    with suppress(torch.cuda.OutOfMemoryError):
        blocks.extend(_block(size) for _ in range(9))
    fitted = len(blocks)
    require(fitted < 9, "nine eighths of the card's memory could be allocated")  # noqa: PLR2004
    require(fitted > 0, "not one eighth of the card's memory could be allocated")
    blocks.clear()
    torch.cuda.empty_cache()
    try:
        again = [_block(size) for _ in range(fitted)]
    except torch.cuda.OutOfMemoryError as error:
        raise CheckFailed(f"{fitted} blocks fitted once, and not a second time") from error
    again.clear()
    torch.cuda.empty_cache()


@_trains("CM-ERR-004", requires=("error.out_of_memory", "autograd.custom_function"))
def exhaustion_crosses_backward(_subject: Subject) -> None:
    """Running out of memory inside a backward pass MUST reach the caller with its class.

    Fix: see CM-ERR-001; autograd carries C++ exceptions from its threads, but a Python exception
    made from a plain error text loses the class.
    """
    import torch

    class Greedy(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(_ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(_ctx: Any, gradient: Any) -> Any:
            return gradient * _exhaust()

    x = numbers(4).cuda().requires_grad_()
    error = _raised(lambda: Greedy.apply(x).sum().backward())
    require(isinstance(error, torch.cuda.OutOfMemoryError), f"backward raised {error!r}")


@_runs("CM-ERR-010", requires=("error.bad_index",))
def missing_devices_raise(_subject: Subject) -> None:
    """Naming a device that does not exist MUST raise, never take another device.

    Fix: compare an index with the device count before using it, in the adapter's device guard.
    """
    import torch

    missing = f"cuda:{_NO_DEVICE}"
    calls: dict[str, Callable[[], Any]] = {
        "torch.empty(device=)": lambda: torch.empty(1, device=missing),
        "Tensor.to(str)": lambda: torch.ones(1).to(missing),
        "Tensor.cuda(int)": lambda: torch.ones(1).cuda(_NO_DEVICE),
        "Module.cuda(int)": lambda: torch.nn.Linear(1, 1).cuda(_NO_DEVICE),
        "set_device": lambda: torch.cuda.set_device(_NO_DEVICE),
        "torch.cuda.device": lambda: torch.cuda.device(_NO_DEVICE).__enter__(),
        "get_device_properties": lambda: torch.cuda.get_device_properties(_NO_DEVICE),
        "get_device_name": lambda: torch.cuda.get_device_name(_NO_DEVICE),
        "current_stream": lambda: torch.cuda.current_stream(missing),
        "synchronize": lambda: torch.cuda.synchronize(_NO_DEVICE),
    }
    before = torch.cuda.current_device()
    accepted = [name for name, call in calls.items() if _raised_or_none(call) is None]
    require(not accepted, f"accepted: {', '.join(accepted)}")
    now = torch.cuda.current_device()
    require(now == before, f"the current device became {now}")
    require_close(numbers(3).cuda() + 1, numbers(3) + 1, "a sum after the failures")


@_runs("CM-ERR-011", requires=("error.accelerator",))
def device_failures_are_runtime_errors(_subject: Subject) -> None:
    """Failures of the device MUST raise torch.AcceleratorError or another RuntimeError.

    Fix: derive the adapter's exceptions from RuntimeError, or let PyTorch translate C++ errors.
    """
    import torch

    require(torch.cuda.AcceleratorError is torch.AcceleratorError, "the names differ")
    require(issubclass(torch.AcceleratorError, RuntimeError), "it is no RuntimeError")
    for call in (torch.cuda.set_device, torch.cuda.synchronize):
        error = _raised(partial(call, _NO_DEVICE))
        require(isinstance(error, RuntimeError), f"{call.__name__} raised {error!r}")
        require(str(error).strip(), f"{call.__name__} raised without a message")


@_runs("CM-ERR-012", requires=("error.accelerator",))
def messages_name_the_devices(subject: Subject) -> None:
    """An operation on tensors of two devices MUST raise and name both as the program sees them.

    Fix: let PyTorch print the devices; a name that is built by hand misses the view.
    """
    import torch

    x, host = torch.ones(2, device="cuda"), torch.ones(2, device="cpu")
    if x.device == host.device:
        return
    message = str(_raised(lambda: x + host))
    require("cpu" in message, f"the message is {message[:200]!r}")
    shown = "cuda" if subject.view == "cuda" else subject.device_type
    require(str(x.device) in message, f"{shown} is not in the message {message[:200]!r}")


@_runs("CM-ERR-013", requires=("error.recovery",))
def wrong_programs_fail_as_on_the_cpu(_subject: Subject) -> None:
    """Wrong shapes, dtypes and dimensions MUST raise the class of error that the CPU raises.

    Fix: check arguments before launching a kernel; structured operators do it for all devices.
    """
    import torch

    def wrong(place: str) -> dict[str, Callable[[], Any]]:
        a, b = torch.ones(2, 3, device=place), torch.ones(2, 3, device=place)
        return {
            "matmul of wrong shapes": lambda: a @ b,
            "view of another size": lambda: a.view(7),
            "dimension out of range": lambda: a.sum(dim=5),
            "cat of wrong shapes": lambda: torch.cat([a, torch.ones(2, 4, 5, device=place)]),
            "matmul of two dtypes": lambda: a @ b.T.long(),
            "item of many": a.item,
            "backward without a graph": lambda: a.sum().backward(),
        }

    expected = wrong("cpu")
    for name, call in wrong("cuda").items():
        seen, reference = _raised(call), _raised(expected[name])
        same = type(seen) is type(reference)
        require(same, f"{name}: {type(seen).__name__}, on the CPU {type(reference).__name__}")
    require_close(torch.ones(2, device="cuda") * 2, torch.full((2,), 2.0), "a product afterwards")


@_runs("CM-ERR-020", requires=("error.refusal",))
def refusals_explain_themselves(_subject: Subject) -> None:
    """A refused CUDA name MUST raise RefusedError with its code, a reason and what to use instead.

    Fix: give an ``ApiMapping`` with treatment ``refuse`` a ``note`` and a ``replacement``.
    """
    import torch

    from cuda_morph import activation
    from cuda_morph.errors import RefusedError
    from cuda_morph.records import Treatment

    manifest = activation.current()
    rows = manifest.rows if manifest else ()
    refused = [row for row in rows if row.treatment is Treatment.REFUSE]
    for row in refused:
        name = row.name.removeprefix("torch.cuda.")
        target = getattr(torch.cuda, name, None) if "." not in name else None
        if not callable(target) or name.startswith("_"):
            continue
        error = _raised(partial(_call_with_nothing, target))
        require(isinstance(error, RefusedError), f"{row.name} raised {error!r}")
        require(str(error).startswith("[CM-E07]"), f"{row.name}: no code in {str(error)!r}")
        require(getattr(error, "hint", ""), f"{row.name} says nothing to use instead")


@_runs("CM-ERR-021", requires=("error.refusal",))
def refusals_can_be_caught(_subject: Subject) -> None:
    """A refusal MUST be a NotImplementedError and a RuntimeError; an unknown name no attribute.

    Fix: raise ``cuda_morph.errors.RefusedError`` in the plugin's own answers.
    """
    import torch

    from cuda_morph.errors import RefusedError

    require(issubclass(RefusedError, NotImplementedError), "it is no NotImplementedError")
    require(issubclass(RefusedError, RuntimeError), "it is no RuntimeError")
    require(not hasattr(torch.cuda, "no_such_function"), "any name of torch.cuda answers")
    error = _raised(lambda: torch.cuda.no_such_function)
    require(isinstance(error, AttributeError), f"an unknown name raised {error!r}")


@check("CM-ERR-030", level=Level.RUNS, requires=("error.vendor_codes",), since="1.0", views=())
def vendor_codes_are_complete(subject: Subject) -> None:
    """Every error code of the plugin MUST have a meaning, a known class and a source.

    Fix: fill ``meaning``, ``semantic`` (a word of ``cuda_morph.error_semantics``) and ``source``.
    """
    from cuda_morph.error_semantics import is_semantic
    from cuda_morph.records import ErrorCode, ErrorRule

    records = subject.call("cuda_morph_error_codes")
    codes = [record for record in records if isinstance(record, ErrorCode)]
    require(codes, "there is not one code")
    for code in codes:
        for field in ("code", "name", "meaning", "source"):
            require(str(getattr(code, field)).strip(), f"{code.code or code.name}: no {field}")
        require(is_semantic(code.semantic), f"{code.code}: unknown class {code.semantic!r}")
    for rule in records:
        if isinstance(rule, ErrorRule):
            require(is_semantic(rule.semantic), f"unknown class {rule.semantic!r}")
            re.compile(rule.pattern)


@check("CM-ERR-031", level=Level.RUNS, requires=("error.vendor_codes",), since="1.0", views=())
def vendor_codes_are_found(subject: Subject) -> None:
    """Each error name of the plugin MUST be found in a line of a log, and get its class.

    Fix: write names as the vendor's library prints them; two codes of one name need one class.
    """
    from cuda_morph.error_lookup import ErrorTable
    from cuda_morph.records import ErrorCode

    records = subject.call("cuda_morph_error_codes")
    table = ErrorTable((subject.name, record) for record in records)
    lost = [
        record.name
        for record in records
        if isinstance(record, ErrorCode)
        and record not in [match.entry for match in table.search(f"call failed: {record.name}.")]
    ]
    require(not lost, f"{len(lost)} names are not found, first {lost[:3]}")


@_runs("CM-ERR-032", requires=("error.vendor_codes", "error.out_of_memory"))
def vendor_exhaustion_is_translated(subject: Subject) -> None:
    """The vendor's own out-of-memory code MUST become torch.OutOfMemoryError when translated.

    Fix: give that code the class ``out_of_memory`` in ``cuda_morph_error_codes``.
    """
    import torch

    from cuda_morph.errors import translate
    from cuda_morph.records import ErrorCode

    codes = [
        record
        for record in subject.call("cuda_morph_error_codes")
        if isinstance(record, ErrorCode) and record.semantic == "out_of_memory"
    ]
    require(codes, "no code has the class out_of_memory")
    for code in codes:
        error = translate(RuntimeError(f"allocation failed with {code.name}"), subject.name)
        require(isinstance(error, torch.OutOfMemoryError), f"{code.name} became {error!r}")


def _exhaust() -> Any:
    """Asks for twice the memory of the card, which no allocator can give."""
    import torch

    return _block(2 * torch.cuda.mem_get_info()[1])


def _block(size: int) -> Any:
    import torch

    return torch.empty(size, dtype=torch.uint8, device="cuda")


def _call_with_nothing(function: Callable[..., Any]) -> Any:
    """Calls with None for each argument that has no default."""
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    try:
        given = list(signature(function).parameters.values())
    except ValueError:  # written in C
        given = []
    return function(*(None for one in given if one.default is one.empty and one.kind in kinds))


def _raised_or_none(call: Callable[[], Any]) -> BaseException | None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - the class is what the caller judges
        return error.with_traceback(None)
    return None


def _raised(call: Callable[[], Any]) -> BaseException:
    error = _raised_or_none(call)
    if error is None:
        raise CheckFailed("a call that must fail raised nothing")
    return error
