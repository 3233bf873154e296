"""Feeding the device and handing its tensors on: loaders, NumPy, DLPack, sharing, profiling."""

from __future__ import annotations

import multiprocessing
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

from cuda_morph.records import Support
from cuda_morph_conformance.models import BATCH, integers, numbers
from cuda_morph_conformance.registry import CheckFailed, check, require
from cuda_morph_conformance.tolerances import require_close
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from cuda_morph_conformance.subject import Subject

_runs = partial(check, level=Level.RUNS, since="1.0", devices=1)
_trains = partial(check, level=Level.TRAINS, since="1.0", devices=1)


@_trains("CM-IO-030", requires=("io.dataloader",))
def loaders_feed_the_device(_subject: Subject) -> None:
    """A DataLoader with worker processes and pinned memory MUST feed the device every sample once.

    Fix: workers are forked; nothing in the adapter may touch the device when a process is forked,
    and the pin-memory thread must be able to pin without a current device of its own.
    """
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    data, labels = numbers(4 * BATCH, 3), integers(9, 4 * BATCH)
    loader = DataLoader(
        TensorDataset(data, labels), batch_size=BATCH, num_workers=1, pin_memory=True
    )
    seen = [(x.to("cuda", non_blocking=True), y.cuda(non_blocking=True)) for x, y in iter(loader)]
    torch.cuda.synchronize()
    require(all(x.is_cuda and y.is_cuda for x, y in seen), "a batch did not reach the device")
    require_close(torch.cat([x for x, _ in seen]), data, "samples")
    require_close(torch.cat([y for _, y in seen]), labels, "labels")


@_trains("CM-IO-031", requires=("io.dataloader", "memory.pinned"))
def loaders_pin_nested_batches(_subject: Subject) -> None:
    """With pin_memory=True, batches of any structure MUST arrive in pinned memory.

    Fix: let ``Tensor.is_pinned`` recognise what ``Tensor.pin_memory`` returns.
    """
    from torch.utils.data import DataLoader

    samples = [{"x": numbers(3), "pair": (index, numbers(2))} for index in range(4)]
    for batch in DataLoader(samples, batch_size=2, pin_memory=True):
        require(batch["x"].is_pinned(), "batch['x'] is not pinned")
        require(batch["pair"][1].is_pinned(), "a tensor in a tuple is not pinned")
        require_close(batch["x"].cuda(non_blocking=True).cpu(), batch["x"], "the batch")


@_trains("CM-IO-032", requires=("io.dataloader",))
def samplers_take_device_generators(_subject: Subject) -> None:
    """Workers MUST start and draw their order from a seeded generator, device in use or not.

    Fix: nothing of the device may be needed to make a CPU generator or to fork a worker.
    """
    import torch
    from torch.utils.data import DataLoader

    torch.ones(2, device="cuda").sum().item()
    orders = []
    for _ in range(2):
        generator = torch.Generator().manual_seed(3)
        loader = DataLoader(range(16), shuffle=True, generator=generator, num_workers=1)
        orders.append([int(value) for value in loader])
    require(orders[0] == orders[1], f"two orders from one seed: {orders}")
    require(sorted(orders[0]) == list(range(16)), f"not every sample came once: {orders[0]}")


@_runs("CM-IO-040", requires=("io.numpy",))
def numpy_through_the_cpu(_subject: Subject) -> None:
    """Device tensors MUST go to NumPy through cpu(), come back, and refuse the direct way.

    Fix: raise in ``Tensor.numpy`` for device tensors, which PyTorch does for devices it knows.
    """
    import torch

    value = numbers(3, 2)
    array = value.cuda().cpu().numpy()
    require_close(torch.from_numpy(array).cuda(), value, "through NumPy and back")
    require_close(torch.as_tensor(array, device="cuda"), value, "as_tensor")
    require_close(torch.tensor(array.tolist(), device="cuda"), value, "tensor of a list")
    device = value.cuda()
    require(device.tolist() == value.tolist(), "tolist() differs")
    if device.device.type == "cpu":
        return
    try:
        device.numpy()
    except TypeError as error:
        require("cpu" in str(error), f"the message does not name the way: {error}")
    else:
        raise CheckFailed("Tensor.numpy() of a device tensor did not raise")


@_runs("CM-IO-041", requires=("io.dlpack",))
def dlpack_exchanges(_subject: Subject) -> None:
    """A DLPack capsule of a device tensor MUST come back as a tensor of the same memory.

    Fix: give the device a DLPack device type, and ``data_ptr`` the address that others can use.
    """
    import torch
    from torch.utils import dlpack

    value = numbers(3, 2).cuda()
    back = dlpack.from_dlpack(dlpack.to_dlpack(value))
    require(back.device == value.device, f"the tensor came back on {back.device}")
    require_close(back, value, "the tensor that came back")
    back.fill_(2)
    torch.cuda.synchronize()
    require_close(value, torch.full((3, 2), 2.0), "the original after its twin was written to")


@_trains("CM-IO-042", requires=("io.share",))
def tensors_are_shared(_subject: Subject) -> None:
    """A device tensor sent through a torch.multiprocessing queue MUST share its memory.

    Fix: implement ``_share_cuda_``-like handles for the device's storages, or claim not_yet.
    """
    import torch
    from torch.multiprocessing.reductions import reduce_tensor

    value = torch.zeros(2, device="cuda")
    if value.device.type == "cpu":
        return
    rebuild, arguments = reduce_tensor(value)
    process = multiprocessing.get_context("spawn").Process(target=_fill, args=(rebuild, arguments))
    process.start()
    process.join()
    require(process.exitcode == 0, f"the other process ended with {process.exitcode}")
    require_close(value, torch.ones(2), "what the other process wrote")


@_runs("CM-IO-050", requires=("io.profiler",))
def profiles_record_operators(subject: Subject) -> None:
    """torch.profiler with the CUDA activity MUST run and record the operators of the device.

    A claim ``full`` must also show time that was spent on the device.

    Fix: register a profiler for PrivateUse1 (``ProfilerStubs``, or a Kineto plugin), or claim
    partial and say what is not recorded.
    """
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    x = numbers(32, 32).cuda()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found,
            record_function("cm_block"),
        ):
            (x @ x).relu_().sum()
            torch.cuda.synchronize()
    rows = {row.key: row for row in found.key_averages()}
    absent = {"aten::mm", "aten::relu_", "aten::sum", "cm_block"} - rows.keys()
    require(not absent, f"not recorded: {sorted(absent)}")
    if subject.claims["io.profiler"] is Support.FULL:
        spent = rows["aten::mm"].device_time_total
        require(spent > 0, f"device time of the product is {spent}")


@_runs("CM-IO-051", requires=("io.ranges",))
def ranges_are_accepted(_subject: Subject) -> None:
    """torch.cuda.nvtx ranges and marks MUST be accepted, nested, and as a decorator.

    Fix: remove the override of ``torch.cuda.nvtx``; core answers for it.
    """
    import torch
    from torch.cuda import nvtx

    outer = nvtx.range_push("outer")
    inner = nvtx.range_push("inner")
    nvtx.mark("here")
    require(inner == outer + 1, f"depths {outer} and {inner}, expected one more")
    nvtx.range_pop()
    nvtx.range_pop()
    with nvtx.range("block {}", 1):
        value = nvtx.range("decorated")(torch.ones)(2, device="cuda")
    nvtx.range_end(nvtx.range_start("started"))
    require_close(value, torch.ones(2, device="cpu"), "what ran inside the ranges")


@_runs("CM-IO-052", requires=("io.ranges",))
def profiler_switches_are_accepted(_subject: Subject) -> None:
    """torch.cuda.profiler and emit_nvtx MUST be accepted around device work, and change nothing.

    Fix: remove the override of ``torch.cuda.profiler``; core answers for it.
    """
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.cuda.profiler.profile():
            first = numbers(4).cuda() * 2
        with torch.autograd.profiler.emit_nvtx():
            second = numbers(4).cuda() * 2
    require_close(first, second, "results inside the two blocks")


@_runs("CM-IO-053", requires=("io.numpy",))
def copies_hold_on_to_their_source(_subject: Subject) -> None:
    """A non-blocking copy MUST have the values of its moment, whatever becomes of its source.

    Fix: a copy that returns early must hold on to its source, and wait for memory that is not
    pinned: PyTorch promises that only pinned memory may not be written to yet.
    """
    import torch

    if torch.empty(0, device="cuda").device.type == "cpu":
        return  # moving a tensor of the CPU to the CPU copies nothing
    copies = []
    for seed in range(8):
        host = numbers(1 << 14, seed=seed)
        copies.append(host.to("cuda", non_blocking=True))
        host.fill_(-1)
    torch.cuda.synchronize()
    for seed, value in enumerate(copies):
        require_close(value, numbers(1 << 14, seed=seed), f"copy {seed}")


def _fill(rebuild: Any, arguments: Any) -> None:
    """Runs in the other process."""
    import torch

    rebuild(*arguments).fill_(1)
    torch.cuda.synchronize()
