"""What the simulated device claims: capabilities and dtypes.

A claim is about what the device does in a program; how fast or how concurrent it is cannot be
simulated, and the notes say where that matters.
"""

from __future__ import annotations

from cuda_morph.records import CapabilityClaim, DtypeSupport, Support

_IN_ORDER = "Work runs in program order on the calling thread; streams are identities."

_DTYPES = (
    "float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2 int64 int32 int16 int8 uint8 bool "
    "complex64 complex128"
)

_FULL: dict[str, str] = {
    "load": "install discovery isolation detection static_claims activation reversible inheritance",
    "device": "string index count current context multiple synchronize properties name capability "
    "visible tensor_methods module_methods default mismatch peer_copy",
    "memory": "allocated reserved stats summary peak_reset info empty_cache pinned",
    "rng": "seed seed_all state generator fork deterministic",
    "dtype": f"{_DTYPES} legacy_types",
    "autograd": "backward double_backward custom_function checkpoint transforms optimizers "
    "fused_optimizers parity",
    "amp": "autocast legacy bfloat16 float16 grad_scaler custom_fwd",
    "io": "save load map_location cuda_checkpoint portable_checkpoint safetensors dataloader numpy "
    "ranges",
    "error": "out_of_memory recovery accelerator bad_index refusal",
    "dist": "init nccl_name broadcast all_reduce reduce all_gather reduce_scatter gather scatter "
    "all_to_all send_recv barrier objects coalesced async_op subgroups device_id device_mesh ddp "
    "fsdp tensor_parallel launch",
    "attn": "sdpa fused backward causal mask dropout gqa varlen kvcache sliding_window softcap "
    "alibi flash_attn_import transformers",
    "compile": "dynamo inductor dynamic_shapes training export",
    "ext": "custom_op",
}

_IN_PROGRAM_ORDER: dict[str, str] = {
    "stream": "create current context default wait synchronize query priority record",
    "event": "record wait query synchronize timing",
    "memory": "async_copy",
}

_ABSENT: dict[str, tuple[Support, str]] = {
    "device.utilization": (Support.NEVER, "There is no card to measure."),
    "memory.fraction": (Support.NOT_YET, "The fraction is remembered, not enforced."),
    "memory.pool": (Support.NOT_YET, ""),
    "memory.snapshot": (Support.NOT_YET, "The list of segments is empty."),
    "stream.external": (Support.NEVER, "There is no driver whose streams could be wrapped."),
    "event.ipc": (Support.NOT_YET, ""),
    "io.share": (Support.NOT_YET, "PyTorch shares storages of the CPU and of CUDA only."),
    "error.vendor_codes": (Support.NEVER, "There is no vendor whose codes could be explained."),
    "compile.aot": (Support.NOT_YET, "Refused; torch.compile and torch.export work."),
    "compile.triton": (Support.NEVER, "Triton compiles for no simulated device."),
    "graph.capture": (Support.NEVER, "There is no device work to record."),
    "graph.replay": (Support.NEVER, ""),
    "graph.callables": (Support.NEVER, ""),
    "graph.pool": (Support.NEVER, ""),
    "ext.build": (Support.NOT_YET, ""),
    "ext.load": (Support.NOT_YET, ""),
    "ext.symbol_map": (Support.NEVER, "There is no runtime whose functions could be named."),
}

_PARTIAL: dict[str, str] = {
    "dtype.tf32": "Products have full precision, whatever the switch allows.",
    "io.dlpack": "Capsules work; Tensor.__dlpack_device__ knows the device in the cuda view only.",
    "io.profiler": "Operators are recorded on the host; there are no device kernels to record.",
}


def _ids(table: dict[str, str]) -> list[str]:
    return [f"{family}.{ability}" for family, text in table.items() for ability in text.split()]


CAPABILITIES: tuple[CapabilityClaim, ...] = (
    *(CapabilityClaim(id=one, support=Support.FULL) for one in _ids(_FULL)),
    *(
        CapabilityClaim(id=one, support=Support.EMULATED, note=_IN_ORDER)
        for one in _ids(_IN_PROGRAM_ORDER)
    ),
    *(CapabilityClaim(id=one, support=Support.PARTIAL, note=why) for one, why in _PARTIAL.items()),
    *(
        CapabilityClaim(id=one, support=support, note=why)
        for one, (support, why) in _ABSENT.items()
    ),
)
"""What is not listed is unknown; conformance then says what it found."""

ATTENTION_FEATURES = (
    "causal",
    "window",
    "softcap",
    "alibi",
    "mask",
    "dropout",
    "deterministic",
    "lse",
    "gqa",
    "backward",
    "empty_rows",
    "value_dim",
    "paged",
    "cache_rows",
    "cache_starts",
)
"""What the blocked attention kernel does, in the words of `AttentionKernel`."""

DTYPES: tuple[DtypeSupport, ...] = tuple(
    DtypeSupport(dtype=one, support=Support.FULL) for one in _DTYPES.split()
)
"""The host's dtypes are the device's dtypes."""
