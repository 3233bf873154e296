"""Running out of memory, limits, pools, records of allocations, and pinned host memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_morph_conformance.checks.memory import NBYTES, SLACK, block
from cuda_morph_conformance.expectations import require_equal, require_on, require_raises
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from cuda_morph_conformance.subject import Subject

ENDLESS = 1 << 50
"""A pebibyte: more than any device has."""
_PINNED = ("memory.pinned",)


@check(
    "CM-MEM-020",
    level=Level.RUNS,
    requires=("error.out_of_memory", "memory.allocated"),
    since="1.0",
    devices=1,
)
def too_much_leaves_counts_alone(_subject: Subject) -> None:
    """A failed allocation MUST raise torch.OutOfMemoryError and MUST NOT stay counted.

    Fix: raise ``c10::OutOfMemoryError`` in the allocator before its counters are changed.
    """
    import torch

    held = block()
    before = torch.cuda.memory_allocated()
    text = require_raises(
        torch.OutOfMemoryError, lambda: torch.empty(ENDLESS, device="cuda"), what="4 PiB"
    )
    require("memory" in text, f"the error does not speak of memory: {text[:200]}")
    left = torch.cuda.memory_allocated() - before
    require(abs(left) <= SLACK, f"{left} bytes stayed counted")
    require_equal(held.sum().item(), float(held.numel()), "the sum of a tensor made before")


@check(
    "CM-MEM-021",
    level=Level.RUNS,
    requires=("error.out_of_memory", "error.recovery"),
    since="1.0",
    devices=1,
)
def work_goes_on_after_too_much(_subject: Subject) -> None:
    """After an out-of-memory error was caught, the usual retry with less MUST succeed.

    Fix: leave the allocator and the streams usable when an allocation fails.
    """
    import torch

    for size in (ENDLESS, ENDLESS >> 1):
        require_raises(
            torch.cuda.OutOfMemoryError,
            lambda size=size: torch.ones(size, dtype=torch.uint8, device="cuda"),
            what=f"{size} bytes",
        )
        torch.cuda.empty_cache()
    result = torch.ones(1 << 20, dtype=torch.uint8, device="cuda")
    require_equal(int(result.sum(dtype=torch.int64).item()), 1 << 20, "a sum of the retry")
    require_equal(int((torch.ones(3, device="cuda") + 1).sum().item()), 6, "a sum afterwards")


@check(
    "CM-MEM-022",
    level=Level.RUNS,
    requires=("error.out_of_memory", "memory.stats"),
    since="1.0",
    devices=1,
)
def failures_are_counted(_subject: Subject) -> None:
    """num_ooms of memory_stats MUST count each out-of-memory error.

    Fix: count failed allocations in the allocator's statistics.
    """
    import torch

    before = torch.cuda.memory_stats()["num_ooms"]
    require_raises(
        torch.OutOfMemoryError, lambda: torch.empty(ENDLESS, device="cuda"), what="4 PiB"
    )
    require_equal(torch.cuda.memory_stats()["num_ooms"], before + 1, "num_ooms")


@check("CM-MEM-023", level=Level.RUNS, requires=("memory.fraction",), since="1.0", devices=1)
def fraction_limits_the_process(_subject: Subject) -> None:
    """set_per_process_memory_fraction MUST limit what this process can allocate.

    Fix: enforce the fraction in the allocator, and name the function in the device module; or
    claim ``memory.fraction`` as not_yet.
    """
    import torch

    _free, total = torch.cuda.mem_get_info()
    held = block()
    used = torch.cuda.memory_reserved()
    before = torch.cuda.get_per_process_memory_fraction()
    try:
        torch.cuda.set_per_process_memory_fraction(min(1.0, (used + 2 * NBYTES) / total))
        require_raises(
            torch.OutOfMemoryError,
            lambda: torch.empty(8 * NBYTES, dtype=torch.uint8, device="cuda"),
            what="an allocation above the fraction",
        )
    finally:
        torch.cuda.set_per_process_memory_fraction(before)
    require(block().numel() == held.numel(), "the limit stayed")


@check("CM-MEM-024", level=Level.RUNS, requires=("memory.snapshot",), since="1.0", devices=1)
def snapshots_show_allocations(_subject: Subject) -> None:
    """A memory snapshot MUST list the segments that hold the tensors in use.

    Fix: report the allocator's blocks in the form of ``torch.cuda.memory._snapshot``, or claim
    ``memory.snapshot`` as not_yet.
    """
    import torch

    held = block()
    segments = torch.cuda.memory_snapshot()
    require(isinstance(segments, list), f"it is a {type(segments).__name__}")
    sizes = [each["size"] for one in segments for each in one["blocks"]]
    require(any(size >= held.nbytes for size in sizes), f"no block of {held.nbytes} in {sizes[:9]}")


@check("CM-MEM-025", level=Level.RUNS, requires=("memory.pool",), since="1.0", devices=1)
def pools_hold_allocations(_subject: Subject) -> None:
    """Allocations inside ``torch.cuda.use_mem_pool`` MUST come from that pool.

    Fix: map ``MemPool`` through ``cuda_morph_api_mappings``, or claim ``memory.pool`` as not_yet.
    """
    import torch

    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        held = block()
    segments = pool.snapshot()
    require(segments, "the pool is empty after an allocation in it")
    require_equal(held.sum().item(), float(held.numel()), "the sum of a tensor of the pool")


@check("CM-MEM-030", level=Level.RUNS, requires=_PINNED, since="1.0", devices=1)
def pinned_memory_says_so(_subject: Subject) -> None:
    """pin_memory MUST give CPU tensors that say they are pinned; others MUST say they are not.

    Fix: register the device's pinned allocator and ``isPinnedPtr`` (``AcceleratorHooksInterface``).
    """
    import torch

    value = torch.arange(1000)
    require(not value.is_pinned(), "an ordinary tensor says that it is pinned")
    for what, pinned in {
        "pin_memory()": value.pin_memory(),
        "pin_memory=True": torch.empty(4, pin_memory=True).fill_(1),
        "a view": value.pin_memory()[10:20],
    }.items():
        require(pinned.is_pinned(), f"{what}: is_pinned() is False")
        require_equal(pinned.device.type, "cpu", f"{what}: device")
    require(torch.equal(value.pin_memory(), value), "pinning changed values")
    pinned = value.pin_memory()
    require(pinned.pin_memory() is pinned, "pinning a pinned tensor makes a copy")


@check("CM-MEM-031", level=Level.RUNS, requires=_PINNED, since="1.0", devices=1)
def pinned_memory_is_ordinary_memory(_subject: Subject) -> None:
    """Pinned tensors MUST work as CPU tensors, and be usable after others were freed.

    Fix: do not give a pinned block back to the pool while a tensor still uses it.
    """
    import torch

    kept = torch.full((1000,), 3.0).pin_memory()
    for number in range(8):
        torch.full((1000,), float(number)).pin_memory().mul_(2)
    require_equal(kept.sum().item(), 3000.0, "a pinned tensor after others came and went")
    require_equal((kept + 1).is_pinned(), False, "a result of pinned memory is pinned")
    require_equal(kept.numpy()[:2].tolist(), [3.0, 3.0], "its NumPy view")


@check(
    "CM-MEM-032",
    level=Level.RUNS,
    requires=("memory.async_copy", "memory.pinned"),
    since="1.0",
    devices=1,
)
def asynchronous_copies_are_right(subject: Subject) -> None:
    """Asynchronous copies from and to pinned memory MUST give right values once synchronized.

    Fix: keep the pinned block alive, and ordered behind the stream, until the copy has ended.
    """
    import torch

    source = torch.arange(1 << 16, dtype=torch.int32).pin_memory()
    there = source.to("cuda", non_blocking=True)
    require_on(there, subject, ".to(non_blocking=True)", index=torch.cuda.current_device())
    back = torch.empty(1 << 16, dtype=torch.int32, pin_memory=True)
    back.copy_(there * 2, non_blocking=True)
    torch.cuda.synchronize()
    require(torch.equal(back, source * 2), "values are wrong after synchronize")


@check(
    "CM-MEM-033",
    level=Level.RUNS,
    requires=("memory.async_copy", "memory.pinned"),
    since="1.0",
    devices=1,
)
def freed_pinned_memory_waits_for_copies(_subject: Subject) -> None:
    """A pinned block freed during an asynchronous copy MUST NOT be reused before the copy ends.

    Fix: record an event behind the copy, and reuse the block only when it was reached.
    """
    import torch

    copies = []
    for number in range(16):
        source = torch.full((1 << 16,), number, dtype=torch.int32).pin_memory()
        copies.append(source.cuda(non_blocking=True))
        del source
    torch.cuda.synchronize()
    wrong = [
        number for number, copy in enumerate(copies) if not bool((copy == number).all().item())
    ]
    require(not wrong, f"copies {wrong} hold values of later blocks")


@check(
    "CM-MEM-034",
    level=Level.RUNS,
    requires=("memory.async_copy",),
    since="1.0",
    devices=1,
)
def copies_on_streams_are_ordered(_subject: Subject) -> None:
    """A copy on a side stream that waits for the current one MUST see the current one's results.

    Fix: issue copies on the current stream of the device, not on a stream of the runtime's own.
    """
    import torch

    side = torch.cuda.Stream()
    value = torch.zeros(1 << 18, device="cuda")
    for _ in range(4):
        value += 1
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        host = value.to("cpu", non_blocking=True)
    side.synchronize()
    require(bool((host == 4).all()), f"the copy holds {host[:3].tolist()}, expected 4")  # noqa: PLR2004
