"""Counting, choosing and describing devices through ``torch.cuda``."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from cuda_morph_conformance.expectations import (
    require_equal,
    require_on,
    require_raises,
    same_device,
    same_random_numbers,
)
from cuda_morph_conformance.registry import CheckFailed, check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from torch import Tensor

    from cuda_morph_conformance.subject import Subject

_FIELDS = (
    "name major minor total_memory multi_processor_count is_integrated is_multi_gpu_board "
    "max_threads_per_multi_processor max_threads_per_block warp_size regs_per_multiprocessor "
    "shared_memory_per_block shared_memory_per_multiprocessor L2_cache_size gcnArchName uuid"
)
"""Fields of CUDA's device properties that programs read."""


@check("CM-DEV-001", level=Level.RUNS, requires=("device.count",), since="1.0", devices=1)
def count_is_what_was_detected(subject: Subject) -> None:
    """torch.cuda.device_count MUST give the number of devices that detection found.

    Fix: let ``cuda_morph_detect`` and the device module's ``device_count()`` ask the same function
    of the driver, after the variable of visible devices was applied.
    """
    import torch

    require_equal(torch.cuda.device_count(), subject.device_count, "device_count()")
    require_equal(torch.cuda.device_count(), subject.device_count, "device_count(), asked again")
    require_equal(len(torch.cuda.default_generators), subject.device_count, "default_generators")


@check("CM-DEV-002", level=Level.RUNS, requires=("device.count",), since="1.0", devices=1)
def absent_devices_raise(subject: Subject) -> None:
    """Asking for a device beyond the last one MUST raise, and leave the current device alone.

    Fix: check the index in the device module's ``set_device`` before calling the driver.
    """
    import torch

    beyond, before = subject.device_count + 40, torch.cuda.current_device()
    errors = (RuntimeError, AssertionError, ValueError)
    for name in ("set_device", "get_device_name", "get_device_properties"):
        require_raises(errors, getattr(torch.cuda, name), beyond, what=f"{name}({beyond})")
    require_equal(torch.cuda.current_device(), before, "current_device() afterwards")


@check("CM-DEV-003", level=Level.RUNS, requires=("device.current",), since="1.0", devices=1)
def current_device_is_where_tensors_go(subject: Subject) -> None:
    """torch.cuda.current_device MUST be the index of the device that plain ``cuda`` means.

    Fix: answer ``current_device()`` from the same thread-local state that the allocator uses.
    """
    import torch

    index = torch.cuda.current_device()
    require(type(index) is int, f"current_device() is {index!r}, no int")
    require(0 <= index < subject.device_count, f"current_device() is {index}")
    require_on(torch.ones(2, device="cuda"), subject, "device='cuda'", index=index)


@check("CM-DEV-004", level=Level.RUNS, requires=("device.current",), since="1.0", devices=1)
def set_device_takes_all_spellings(subject: Subject) -> None:
    """torch.cuda.set_device MUST take an int, a string and a torch.device, for every device.

    Fix: accept in ``set_device`` of the device module what ``torch.device`` accepts.
    """
    import torch

    with same_device():
        for index in range(subject.device_count):
            for device in (index, f"cuda:{index}", torch.device("cuda", index)):
                torch.cuda.set_device(0)
                torch.cuda.set_device(device)
                require_equal(torch.cuda.current_device(), index, f"after set_device({device!r})")
        before = torch.cuda.current_device()
        torch.cuda.set_device(-1)
        require_equal(torch.cuda.current_device(), before, "after set_device(-1)")


@check(
    "CM-DEV-005",
    level=Level.RUNS,
    requires=("device.current", "device.multiple"),
    since="1.0",
    devices=2,
)
def set_device_moves_plain_names(subject: Subject) -> None:
    """After set_device(1), ``cuda`` without an index MUST mean the second device everywhere.

    Fix: resolve a device without an index through the current device, in every kernel.
    """
    import torch

    with same_device(), same_random_numbers():
        torch.cuda.set_device(1)
        made = {
            "torch.ones": torch.ones(2, device="cuda"),
            ".cuda()": torch.ones(2).cuda(),
            ".to": torch.ones(2).to("cuda"),
            "Module.cuda": torch.nn.Linear(1, 1).cuda().weight,
            "with torch.device": _made_in_context(),
        }
        for what, tensor in made.items():
            require_on(tensor, subject, what, index=1)
        require_equal(torch.cuda.current_stream().device_index, 1, "current_stream's device")


@check(
    "CM-DEV-006",
    level=Level.RUNS,
    requires=("device.current", "device.multiple"),
    since="1.0",
    devices=2,
)
def threads_have_their_own_device(_subject: Subject) -> None:
    """Each thread MUST have its own current device, which begins as device 0.

    Fix: keep the current device in thread-local storage of the runtime, as CUDA does.
    """
    import torch

    seen: list[int] = []

    def other() -> None:
        seen.append(torch.cuda.current_device())
        torch.cuda.set_device(1)
        seen.append(torch.cuda.current_device())

    with same_device():
        torch.cuda.set_device(0)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        require_equal(seen, [0, 1], "current device in a second thread, before and after")
        require_equal(torch.cuda.current_device(), 0, "current device in the first thread")


@check("CM-DEV-007", level=Level.RUNS, requires=("device.context",), since="1.0", devices=1)
def device_context_restores(subject: Subject) -> None:
    """Leaving ``with torch.cuda.device(...)`` MUST bring the former device back, after errors too.

    Fix: let ``exchange_device`` return the former index, and set it on the way out.
    """
    import torch

    before, last = torch.cuda.current_device(), subject.device_count - 1
    with torch.cuda.device(f"cuda:{last}"):
        require_equal(torch.cuda.current_device(), last, "current device inside")
        require_on(torch.ones(1, device="cuda"), subject, "device='cuda'", index=last)
    require_equal(torch.cuda.current_device(), before, "current device outside")
    with contextlib.suppress(TypeError), torch.cuda.device(last):
        torch.ones("an error inside", device="cuda")
    require_equal(torch.cuda.current_device(), before, "current device after an error")


@check("CM-DEV-008", level=Level.RUNS, requires=("device.context",), since="1.0", devices=1)
def empty_device_contexts_change_nothing(_subject: Subject) -> None:
    """``with torch.cuda.device(None)`` and ``device(-1)`` MUST leave the current device alone.

    Fix: treat a negative index as "no change" in ``exchange_device``.
    """
    import torch

    before = torch.cuda.current_device()
    for nothing in (None, -1):
        with torch.cuda.device(nothing):
            require_equal(torch.cuda.current_device(), before, f"inside device({nothing})")
    with torch.cuda.device_of(torch.ones(1)):
        require_equal(torch.cuda.current_device(), before, "inside device_of(a CPU tensor)")
    require_equal(torch.cuda.current_device(), before, "current device outside")


@check(
    "CM-DEV-009",
    level=Level.RUNS,
    requires=("device.context", "device.multiple"),
    since="1.0",
    devices=2,
)
def device_contexts_nest(_subject: Subject) -> None:
    """Nested device contexts MUST each restore what was current when they were entered.

    Fix: return the index that was really current from ``exchange_device``, not the last one set.
    """
    import torch

    there = torch.ones(1, device="cuda:1")
    with same_device():
        torch.cuda.set_device(0)
        with torch.cuda.device(1):
            with torch.cuda.device(0):
                require_equal(torch.cuda.current_device(), 0, "in the inner context")
            require_equal(torch.cuda.current_device(), 1, "in the outer context")
        with torch.cuda.device_of(there):
            require_equal(torch.cuda.current_device(), 1, "in device_of(a tensor on cuda:1)")
        require_equal(torch.cuda.current_device(), 0, "outside")


@check("CM-DEV-010", level=Level.RUNS, requires=("device.synchronize",), since="1.0", devices=1)
def synchronize_waits(_subject: Subject) -> None:
    """torch.cuda.synchronize MUST return when all work of the device is done, however it is named.

    Fix: wait for all streams of the device, not only for the default stream.
    """
    import torch

    matrix = torch.ones(256, 256, device="cuda")
    index = torch.cuda.current_device()
    for device in (None, index, f"cuda:{index}", torch.device("cuda", index)):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            product = matrix @ matrix
        require(torch.cuda.synchronize(device) is None, f"synchronize({device}) returned a value")
        require(side.query(), f"after synchronize({device}) a side stream is still busy")
        require_equal(product[0, 0].item(), 256.0, "the product")


@check("CM-DEV-011", level=Level.RUNS, requires=("device.properties",), since="1.0", devices=1)
def properties_have_cudas_fields(_subject: Subject) -> None:
    """get_device_properties MUST have the fields that CUDA programs read.

    Fix: give ``get_device_properties`` of the device module CUDA's names; core fills absent ones.
    """
    import torch

    for device in (0, "cuda:0", torch.device("cuda", 0)):
        properties = torch.cuda.get_device_properties(device)
        absent = [name for name in _FIELDS.split() if getattr(properties, name, None) is None]
        require(not absent, f"get_device_properties({device!r}) lacks {', '.join(absent)}")
    require(properties.multi_processor_count > 0, "multi_processor_count is not positive")
    require(properties.total_memory > 1 << 20, f"total_memory is {properties.total_memory}")
    require(not hasattr(properties, "no_such_field"), "it claims a field that CUDA does not have")


@check(
    "CM-DEV-012",
    level=Level.RUNS,
    requires=("device.properties", "memory.info"),
    since="1.0",
    devices=1,
)
def properties_agree_with_memory(_subject: Subject) -> None:
    """total_memory of the properties MUST agree with mem_get_info to a tenth, in bytes.

    Fix: report bytes in both; some runtimes count in MiB, or give the memory of all cards.
    """
    import torch

    told = torch.cuda.get_device_properties(0).total_memory
    _free, total = torch.cuda.mem_get_info(0)
    require(abs(told - total) <= 0.1 * total, f"properties say {told}, mem_get_info {total}")


@check("CM-DEV-013", level=Level.RUNS, requires=("device.name",), since="1.0", devices=1)
def name_is_the_same_everywhere(subject: Subject) -> None:
    """get_device_name MUST give the card's name, the same for every spelling of the device.

    Fix: set ``name`` in the properties that the device module returns.
    """
    import torch

    for index in range(subject.device_count):
        name = torch.cuda.get_device_name(index)
        require(isinstance(name, str) and name.strip(), f"device {index} is called {name!r}")
        for device in (f"cuda:{index}", torch.device("cuda", index)):
            require_equal(torch.cuda.get_device_name(device), name, f"get_device_name({device!r})")
        told = torch.cuda.get_device_properties(index).name
        require_equal(told, name, f"get_device_properties({index}).name")


@check("CM-DEV-014", level=Level.RUNS, requires=("device.capability",), since="1.0", devices=1)
def capability_can_be_compared(_subject: Subject) -> None:
    """get_device_capability MUST be a pair of ints that compares with such as (8, 0), never None.

    Fix: set ``compute_capability`` in ``DeviceMapping``.
    """
    import torch

    pair = torch.cuda.get_device_capability()
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    require(isinstance(pair, tuple) and len(pair) == 2, f"it is {pair!r}")  # noqa: PLR2004 - a pair
    require(all(type(number) is int and number >= 0 for number in pair), f"it is {pair!r}")
    require_equal(torch.cuda.get_device_capability("cuda:0"), pair, "capability of cuda:0")
    require_equal((properties.major, properties.minor), pair, "major and minor of the properties")


@check("CM-DEV-015", level=Level.RUNS, requires=("device.utilization",), since="1.0", devices=1)
def utilization_can_be_read(_subject: Subject) -> None:
    """Utilisation, temperature, power and clock MUST be plausible numbers.

    Fix: supply the functions of ``torch.cuda`` through ``cuda_morph_api_mappings``, or claim
    ``device.utilization`` as never.
    """
    import torch

    limits = {"utilization": 100, "temperature": 150, "power_draw": 5_000_000, "clock_rate": 10_000}
    for name, most in limits.items():
        value = getattr(torch.cuda, name)()
        require(0 <= value <= most, f"torch.cuda.{name}() is {value!r}")


_VISIBLE = """
import torch
print("seen", torch.cuda.device_count(), torch.ones(1, device="cuda").is_cuda)
"""


@check(
    "CM-DEV-016",
    level=Level.RUNS,
    requires=("device.visible", "device.multiple"),
    since="1.0",
    devices=2,
    views=(),
)
def visible_devices_are_limited(subject: Subject) -> None:
    """With CUDA_VISIBLE_DEVICES=1 a process of several devices MUST see exactly one.

    Fix: name the vendor's variable in ``Backend(visible_devices_env=...)``.
    """
    done = subject.run_program(_VISIBLE, env={"CUDA_VISIBLE_DEVICES": "1"})
    if "seen 1 True" not in done.stdout:
        raise CheckFailed(f"the program printed {(done.stdout + done.stderr)[-400:]!r}")


@check("CM-DEV-017", level=Level.RUNS, requires=("device.count",), since="1.0", devices=1)
def own_module_says_available(subject: Subject) -> None:
    """The device's own module MUST say that a device is available, as libraries ask it that.

    Fix: let ``is_available`` of the device module ask the driver, not for a flag that is set later.
    """
    import torch

    own = torch.get_device_module(subject.device_type)
    require_equal(own.is_available(), True, f"{own.__name__}.is_available()")
    require_equal(torch.accelerator.is_available(), subject.device_type != "cpu", "accelerator")


def _made_in_context() -> Tensor:
    import torch

    with torch.device("cuda"):
        return torch.ones(2)
