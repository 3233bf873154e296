"""The closed list of capability ids that plugins claim and conformance checks.

An id is ``family.ability``. New ids are added with a spec minor and none is ever reused, so a
claim means the same in every version.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from cuda_morph.frozen_record import frozen_record

if TYPE_CHECKING:
    from collections.abc import Mapping

FAMILIES: Mapping[str, str] = MappingProxyType(
    {
        "load": "Installing, finding, starting and leaving a plugin.",
        "device": "Naming, counting and choosing devices.",
        "memory": "Device memory: its use, its limits and pinned host memory.",
        "stream": "Queues of device work.",
        "event": "Marks in a stream.",
        "rng": "Random numbers on the device.",
        "dtype": "Element types.",
        "autograd": "Gradients and training.",
        "amp": "Automatic mixed precision.",
        "io": "Moving tensors in and out of the process.",
        "error": "What happens when something fails.",
        "dist": "Collectives and distributed training.",
        "attn": "Attention kernels.",
        "compile": "torch.compile and export.",
        "graph": "Recorded device work.",
        "ext": "C++ extensions and custom operators.",
    }
)
"""What each family of ids is about."""


@frozen_record
class Capability:
    """One thing a backend may be able to do."""

    id: str
    summary: str
    """One sentence that is true when the capability is there."""
    since: str = "1.0"
    """Spec version that introduced the id."""

    @property
    def family(self) -> str:
        """The part of the id before the first dot."""
        return self.id.partition(".")[0]


_SUMMARIES: dict[str, dict[str, str]] = {
    "load": {
        "install": "The plugin installs beside any PyTorch build and replaces none.",
        "discovery": "The plugin is found and read without importing torch or the vendor library.",
        "isolation": "A failing vendor library leaves core and all other plugins working.",
        "detection": "Detection answers without raising, and gives a reason when it says no.",
        "static_claims": "Claims and mappings can be read on a machine without the device.",
        "activation": "Activation makes the accelerator answer for cuda.",
        "reversible": "Deactivation restores every object that activation changed.",
        "inheritance": "Child processes of an active run are active too.",
    },
    "device": {
        "string": "The strings cuda and cuda:N name the accelerator wherever a device is taken.",
        "index": "A bare integer names the accelerator with that index.",
        "count": "torch.cuda.device_count gives the number of usable accelerators.",
        "current": "The current device can be read and set, per thread.",
        "context": "torch.cuda.device and device_of switch the device for a block.",
        "multiple": "More than one accelerator can be used in one process.",
        "synchronize": "torch.cuda.synchronize waits for all work on a device.",
        "properties": "torch.cuda.get_device_properties describes the card.",
        "name": "torch.cuda.get_device_name gives the card's name.",
        "capability": "torch.cuda.get_device_capability gives a comparable pair of numbers.",
        "visible": "The variable of visible devices limits which cards the process sees.",
        "tensor_methods": "Tensor.cuda, Tensor.is_cuda and Tensor.get_device work.",
        "module_methods": "Module.cuda and Module.to move parameters and buffers.",
        "default": "torch.set_default_device and the device context accept cuda.",
        "mismatch": "Mixing tensors of different devices in one operation raises.",
        "peer_copy": "Tensors can be copied between two accelerators.",
        "utilization": "Utilisation, temperature, power and clock of the card can be read.",
    },
    "memory": {
        "allocated": "Current and peak allocated bytes are counted.",
        "reserved": "Current and peak reserved bytes are counted.",
        "stats": "torch.cuda.memory_stats gives the allocator's counters.",
        "summary": "torch.cuda.memory_summary gives a readable report.",
        "peak_reset": "Peak counters can be reset.",
        "info": "torch.cuda.mem_get_info gives free and total bytes of the card.",
        "empty_cache": "Cached blocks can be given back.",
        "fraction": "The process can be limited to a fraction of the card's memory.",
        "snapshot": "Allocations can be recorded and dumped as a snapshot.",
        "pool": "Allocations can be directed to a pool of their own.",
        "pinned": "Host memory can be pinned, and tells that it is.",
        "async_copy": "Copies from pinned memory may overlap with computation.",
    },
    "stream": {
        "create": "Streams can be created and used by several operations.",
        "current": "The current stream of a device can be read and set.",
        "context": "torch.cuda.stream runs a block on a stream.",
        "default": "The default stream of a device can be named.",
        "wait": "A stream can wait for another stream or for an event.",
        "synchronize": "The host can wait for a stream.",
        "query": "A stream tells whether its work is done.",
        "priority": "Streams can have priorities.",
        "record": "Tensor.record_stream keeps memory alive for a second stream.",
        "external": "A stream made by another library can be wrapped.",
    },
    "event": {
        "record": "Events can be recorded in a stream.",
        "wait": "A stream can be made to wait for an event.",
        "query": "An event tells whether it has been reached.",
        "synchronize": "The host can wait for an event.",
        "timing": "The time between two events can be measured.",
        "ipc": "Events can be shared with another process.",
    },
    "rng": {
        "seed": "manual_seed fixes the numbers of the current device.",
        "seed_all": "manual_seed_all fixes the numbers of all devices.",
        "state": "The generator's state can be read and put back.",
        "generator": "Own generators can be created on the device.",
        "fork": "torch.random.fork_rng restores device generators.",
        "deterministic": "The same seed gives the same numbers on the same device.",
    },
    "dtype": {
        "float64": "Double precision tensors can be created and computed with.",
        "float32": "Single precision tensors can be created and computed with.",
        "tf32": "Reduced precision matrix products can be switched on and off.",
        "float16": "Half precision tensors can be created and computed with.",
        "bfloat16": "bfloat16 tensors can be created and computed with.",
        "float8_e4m3fn": "float8_e4m3fn tensors can be created and converted.",
        "float8_e5m2": "float8_e5m2 tensors can be created and converted.",
        "int64": "64-bit integers can be created and computed with.",
        "int32": "32-bit integers can be created and computed with.",
        "int16": "16-bit integers can be created and computed with.",
        "int8": "8-bit integers can be created and computed with.",
        "uint8": "Bytes can be created and computed with.",
        "bool": "Booleans can be created and computed with.",
        "complex64": "Single precision complex tensors can be created and computed with.",
        "complex128": "Double precision complex tensors can be created and computed with.",
        "legacy_types": "torch.cuda.FloatTensor and its like create device tensors.",
    },
    "autograd": {
        "backward": "Gradients of a forward pass can be computed.",
        "double_backward": "Gradients of gradients can be computed.",
        "custom_function": "torch.autograd.Function works on device tensors.",
        "checkpoint": "Activation checkpointing gives the same gradients and numbers.",
        "transforms": "torch.func transforms such as vmap and grad work.",
        "optimizers": "The optimisers of torch.optim step device parameters.",
        "fused_optimizers": "Optimisers accept fused=True.",
        "parity": "Training follows the CPU's within the checklist's tolerances.",
    },
    "amp": {
        "autocast": "torch.autocast for cuda switches the accelerator's autocast.",
        "legacy": "torch.cuda.amp names work.",
        "bfloat16": "Autocast to bfloat16 gives bfloat16 results.",
        "float16": "Autocast to float16 gives float16 results.",
        "grad_scaler": "GradScaler scales, finds infinities and steps.",
        "custom_fwd": "custom_fwd and custom_bwd follow the autocast state.",
    },
    "io": {
        "save": "Device tensors can be saved with torch.save.",
        "load": "Saved device tensors can be loaded with torch.load.",
        "map_location": "map_location takes cuda, cuda:N and cpu.",
        "cuda_checkpoint": "A checkpoint written on a CUDA machine can be loaded.",
        "portable_checkpoint": "A checkpoint written here can be loaded on another machine.",
        "safetensors": "safetensors files can be loaded straight to the device.",
        "dataloader": "DataLoader with workers and pinned memory feeds the device.",
        "numpy": "Device tensors go to and from NumPy through the CPU.",
        "dlpack": "Tensors can be exchanged through DLPack.",
        "share": "Device tensors can be shared with another process.",
        "profiler": "torch.profiler records device activity.",
        "ranges": "torch.cuda.nvtx ranges are accepted.",
    },
    "error": {
        "out_of_memory": "Running out of device memory raises torch.cuda.OutOfMemoryError.",
        "recovery": "Work can go on after an out-of-memory error was caught.",
        "accelerator": "Device failures raise torch.AcceleratorError or a RuntimeError.",
        "bad_index": "A device index that does not exist raises.",
        "refusal": "A CUDA name without an honest answer raises, with a reason.",
        "vendor_codes": "Vendor error codes are explained.",
    },
    "dist": {
        "init": "A process group can be started on the accelerator.",
        "nccl_name": "The backend name nccl starts the accelerator's own backend.",
        "device_id": "init_process_group takes device_id.",
        "broadcast": "broadcast gives every rank the root's tensor.",
        "all_reduce": "all_reduce gives every rank the reduced tensor.",
        "reduce": "reduce gives the root the reduced tensor.",
        "all_gather": "all_gather gives every rank all tensors.",
        "reduce_scatter": "reduce_scatter gives every rank its part of the reduction.",
        "gather": "gather gives the root all tensors.",
        "scatter": "scatter gives every rank its part of the root's tensors.",
        "all_to_all": "all_to_all exchanges parts between all ranks.",
        "send_recv": "send and recv pass a tensor between two ranks.",
        "barrier": "barrier holds every rank until all are there.",
        "objects": "Object collectives pass Python objects.",
        "coalesced": "Coalesced collectives work.",
        "async_op": "Collectives with async_op return a handle that can be waited for.",
        "subgroups": "Groups of some of the ranks work.",
        "device_mesh": "A device mesh over cuda can be created.",
        "ddp": "DistributedDataParallel gives the gradients of one process.",
        "fsdp": "Fully sharded training gives the gradients of one process.",
        "tensor_parallel": "Tensor parallel layers give the results of one process.",
        "launch": "torchrun starts ranks that are active.",
    },
    "attn": {
        "sdpa": "scaled_dot_product_attention gives the CPU's result.",
        "fused": "Attention runs in a fused kernel.",
        "backward": "The fused kernel has gradients.",
        "causal": "The fused kernel has a causal mask.",
        "mask": "The fused kernel takes an arbitrary mask.",
        "dropout": "The fused kernel has dropout.",
        "gqa": "The fused kernel takes fewer key heads than query heads.",
        "varlen": "Packed sequences of different length have a kernel.",
        "kvcache": "Decoding from a key-value cache has a kernel.",
        "sliding_window": "The fused kernel limits attention to a window.",
        "softcap": "The fused kernel caps scores.",
        "alibi": "The fused kernel takes linear position biases.",
        "flash_attn_import": "Code that imports flash_attn runs.",
        "transformers": "transformers runs with a fused attention implementation.",
    },
    "compile": {
        "dynamo": "torch.compile captures programs whose tensors are on the device.",
        "inductor": "The inductor compiles kernels for the device.",
        "dynamic_shapes": "Compiled programs take changing shapes.",
        "training": "Forward and backward can be compiled.",
        "triton": "Triton kernels run on the device.",
        "export": "torch.export captures programs whose tensors are on the device.",
        "aot": "Programs can be compiled ahead of time and run later.",
    },
    "graph": {
        "capture": "Device work can be recorded in a graph.",
        "replay": "A recorded graph can be replayed with new data.",
        "callables": "make_graphed_callables records a module.",
        "pool": "Graphs can share a memory pool.",
    },
    "ext": {
        "custom_op": "Operators registered for cuda run on the device.",
        "build": "C++ extensions can be built for the device.",
        "load": "torch.utils.cpp_extension.load builds and imports an extension.",
        "symbol_map": "CUDA runtime symbols in sources are translated to the vendor's.",
    },
}

CAPABILITIES: Mapping[str, Capability] = MappingProxyType(
    {
        f"{family}.{ability}": Capability(id=f"{family}.{ability}", summary=summary)
        for family, abilities in _SUMMARIES.items()
        for ability, summary in abilities.items()
    }
)
"""Every capability by id, in order of the checklist."""


def is_capability(id: str) -> bool:  # noqa: A002 - the word of the specification
    """Tells whether an id is on the closed list.

    Args:
        id: For example ``stream.priority``.

    Returns:
        True when a plugin may claim it.
    """
    return id in CAPABILITIES
