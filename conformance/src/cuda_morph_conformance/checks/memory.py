"""Device memory: what is counted, what is reported, and giving it back."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from cuda_morph_conformance.expectations import require_equal, require_raises
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from torch import Tensor

    from cuda_morph_conformance.subject import Subject

NBYTES = 40 << 20
"""Size of the blocks: beyond every allocator's rounding, and small on every card."""
SLACK = 6 << 20
"""What a count may be off by: one that is the process's memory moves with code being loaded."""


def block(device: str = "cuda") -> Tensor:
    """Returns `NBYTES` of device memory that were written to."""
    import torch

    made = torch.ones(NBYTES // 4, device=device)
    torch.cuda.synchronize(device)
    return made


@check("CM-MEM-001", level=Level.RUNS, requires=("memory.allocated",), since="1.0", devices=1)
def allocated_grows_and_falls(_subject: Subject) -> None:
    """memory_allocated MUST grow by a tensor's size when it is made, and fall when it is freed.

    Fix: let ``memory_allocated`` of the device module count bytes in use by tensors, not reserved.
    """
    import torch

    gc.collect()
    before = torch.cuda.memory_allocated()
    held = block()
    grown = torch.cuda.memory_allocated() - before
    require(NBYTES - SLACK <= grown <= 2 * NBYTES, f"{NBYTES} bytes more counted as {grown}")
    require_equal(torch.cuda.memory_allocated("cuda"), torch.cuda.memory_allocated(), "spellings")
    del held
    left = torch.cuda.memory_allocated() - before
    require(abs(left) <= SLACK, f"after freeing, {left} bytes more are counted than before")


@check("CM-MEM-002", level=Level.RUNS, requires=("memory.allocated",), since="1.0", devices=1)
def views_take_no_memory(_subject: Subject) -> None:
    """Views and in-place operations MUST NOT count as new memory; copies MUST.

    Fix: allocate in view and in-place kernels only where the operator's schema returns a new one.
    """
    import torch

    held = block()
    before = torch.cuda.memory_allocated()
    views = [held.view(2, -1), held[10:], held.reshape(-1, 4).t(), held.add_(1)]
    grown = torch.cuda.memory_allocated() - before
    require(abs(grown) <= SLACK, f"{len(views)} views count as {grown} bytes")
    twin = held.clone()
    torch.cuda.synchronize()
    grown = torch.cuda.memory_allocated() - before
    require(grown >= twin.nbytes - SLACK, f"a copy of {twin.nbytes} bytes counts as {grown}")


@check("CM-MEM-003", level=Level.RUNS, requires=("memory.allocated",), since="1.0", devices=1)
def peak_remembers(_subject: Subject) -> None:
    """max_memory_allocated MUST keep the highest count after memory was freed.

    Fix: let ``max_memory_allocated`` follow the count of ``memory_allocated`` at each allocation.
    """
    import torch

    before = torch.cuda.memory_allocated()
    held = block()
    del held
    peak, now = torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated()
    require(peak >= before + NBYTES - SLACK, f"the peak is {peak} with {before} before")
    require(peak >= now, f"the peak {peak} is below the count {now}")


@check(
    "CM-MEM-004",
    level=Level.RUNS,
    requires=("memory.allocated", "memory.peak_reset"),
    since="1.0",
    devices=1,
)
def peaks_are_reset(_subject: Subject) -> None:
    """reset_peak_memory_stats MUST restart the peak from the present count.

    Fix: give the device module ``reset_peak_memory_stats``.
    """
    import torch

    for reset in (torch.cuda.reset_peak_memory_stats, torch.cuda.reset_max_memory_allocated):
        held = block()
        del held
        high = torch.cuda.max_memory_allocated()
        require(reset() is None, f"{reset.__name__} returned a value")
        low, now = torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated()
        require(low <= high - NBYTES // 2, f"after {reset.__name__} the peak is {low}, was {high}")
        require(low >= now - SLACK, f"after {reset.__name__} the peak {low} is below {now}")


@check("CM-MEM-005", level=Level.RUNS, requires=("memory.reserved",), since="1.0", devices=1)
def reserved_covers_allocated(_subject: Subject) -> None:
    """memory_reserved MUST cover what is allocated, and its peak what was reserved.

    Fix: let ``memory_reserved`` count what the allocator took from the driver, in bytes.
    """
    import torch

    held = block()
    reserved, allocated = torch.cuda.memory_reserved(), torch.cuda.memory_allocated()
    require(reserved >= held.nbytes, f"{reserved} bytes reserved with {held.nbytes} in use")
    require(reserved >= allocated - SLACK, f"{reserved} reserved, {allocated} allocated")
    peak = torch.cuda.max_memory_reserved()
    require(peak >= reserved - SLACK, f"{reserved} reserved, with a peak of {peak}")


@check("CM-MEM-006", level=Level.RUNS, requires=("memory.stats",), since="1.0", devices=1)
def stats_have_cudas_keys(_subject: Subject) -> None:
    """memory_stats MUST have the keys that PyTorch's own code and programs read, as integers.

    Fix: name the counters of the device module's ``memory_stats`` as PyTorch's CUDA allocator does.
    """
    import torch

    stats = torch.cuda.memory_stats()
    kinds = ("allocated_bytes", "reserved_bytes", "active_bytes", "allocation", "segment")
    moments = ("current", "peak", "allocated", "freed")
    keys = [f"{kind}.all.{moment}" for kind in kinds for moment in moments]
    keys += ["num_ooms", "num_alloc_retries"]
    absent = [key for key in keys if type(stats.get(key)) is not int]
    require(not absent, f"not there, or no integers: {', '.join(absent)}")
    nested = torch.cuda.memory_stats_as_nested_dict()
    require("current" in nested["allocated_bytes"]["all"], "the nested form has other keys")


@check(
    "CM-MEM-007",
    level=Level.RUNS,
    requires=("memory.stats", "memory.allocated"),
    since="1.0",
    devices=1,
)
def stats_agree_with_functions(_subject: Subject) -> None:
    """memory_stats MUST agree with memory_allocated and memory_reserved, and count new memory.

    Fix: answer both from the same counters of the allocator.
    """
    import torch

    before = torch.cuda.memory_stats()
    held = block()
    after = torch.cuda.memory_stats(torch.cuda.current_device())
    key = "allocated_bytes.all.current"
    require(after[key] - before[key] >= held.nbytes - SLACK, f"{key}: {before[key]} {after[key]}")
    for name, function in {
        "allocated_bytes.all.current": torch.cuda.memory_allocated,
        "reserved_bytes.all.current": torch.cuda.memory_reserved,
    }.items():
        told, counted = function(), after[name]
        require(abs(told - counted) <= SLACK, f"{function.__name__} {told}, {name} {counted}")


@check("CM-MEM-008", level=Level.RUNS, requires=("memory.summary",), since="1.0", devices=1)
def summary_is_readable(_subject: Subject) -> None:
    """memory_summary MUST give a table with the allocated memory, long and abbreviated.

    Fix: as for the keys of memory_stats, which the table is made from.
    """
    import torch

    held = block()
    for abbreviated in (False, True):
        text = torch.cuda.memory_summary(abbreviated=abbreviated)
        require("Allocated memory" in text, f"it begins {text[:80]!r}")
        line = next(line for line in text.splitlines() if "Allocated memory" in line)
        shows = any(unit in line for unit in ("MiB", "GiB")) or int(line.split()[4]) > 0
        require(shows, f"with {held.nbytes} bytes in use it says {line!r}")


@check("CM-MEM-009", level=Level.RUNS, requires=("memory.info",), since="1.0", devices=1)
def free_memory_falls(_subject: Subject) -> None:
    """mem_get_info MUST give free and total bytes, with 0 < free <= total, for every spelling.

    Fix: give the device module ``mem_get_info``, in bytes, free first.
    """
    import torch

    index = torch.cuda.current_device()
    _free, total = torch.cuda.mem_get_info()
    for device in (index, f"cuda:{index}", torch.device("cuda", index)):
        pair = torch.cuda.mem_get_info(device)
        require(len(pair) == 2 and 0 < pair[0] <= pair[1], f"mem_get_info({device!r}) is {pair}")  # noqa: PLR2004 - a pair
        require_equal(pair[1], total, f"total of mem_get_info({device!r})")
    require(total > NBYTES, f"the card has {total} bytes")


@check("CM-MEM-010", level=Level.RUNS, requires=("memory.empty_cache",), since="1.0", devices=1)
def cache_is_emptied(_subject: Subject) -> None:
    """empty_cache MUST give back memory that no tensor uses, and keep what tensors use.

    Fix: free cached blocks of the allocator in ``empty_cache``, and only those.
    """
    import torch

    held = block()
    spare = block()
    del spare
    full = torch.cuda.memory_reserved()
    require(torch.cuda.empty_cache() is None, "empty_cache returned a value")
    require(torch.cuda.memory_reserved() <= full, "empty_cache reserved more memory")
    unused = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    require(unused < NBYTES, f"{unused} unused bytes are still reserved")
    require_equal(held.sum().item(), float(held.numel()), "the sum of a tensor in use")


@check("CM-MEM-011", level=Level.RUNS, requires=("memory.stats",), since="1.0", devices=1)
def running_totals_are_reset(_subject: Subject) -> None:
    """reset_accumulated_memory_stats MUST restart running totals, and leave what is in use.

    Fix: give the device module ``reset_accumulated_memory_stats``.
    """
    import torch

    held = block()
    require(torch.cuda.reset_accumulated_memory_stats() is None, "it returned a value")
    stats = torch.cuda.memory_stats()
    total = stats["allocated_bytes.all.allocated"]
    require(total < NBYTES, f"the running total is {total} after the reset")
    require(stats["allocated_bytes.all.current"] >= held.nbytes, "memory in use was forgotten")


@check(
    "CM-MEM-012",
    level=Level.RUNS,
    requires=("memory.allocated", "device.multiple"),
    since="1.0",
    devices=2,
)
def devices_are_counted_apart(_subject: Subject) -> None:
    """Memory of one device MUST NOT count on another.

    Fix: keep the counters per device, and use the index that the function is given.
    """
    import torch

    first, second = torch.cuda.memory_allocated(0), torch.cuda.memory_allocated(1)
    held = block("cuda:1")
    require_equal(torch.cuda.memory_allocated(0), first, "count of device 0")
    grown = torch.cuda.memory_allocated("cuda:1") - second
    require(grown >= held.nbytes, f"{held.nbytes} bytes on device 1 counted as {grown}")
    require_raises(
        (RuntimeError, AssertionError), torch.cuda.memory_allocated, 99, what="device 99"
    )
