"""What the CPU claims to do when it stands for CUDA: it computes, and it is no card."""

from __future__ import annotations

from cuda_morph.records import CapabilityClaim, Support

_FULL: dict[str, str] = {
    "load": "install discovery isolation detection static_claims activation reversible inheritance",
    "device": "string index count current context synchronize properties name capability "
    "tensor_methods module_methods default",
    "memory": "allocated reserved stats summary peak_reset info empty_cache",
    "stream": "create current context default wait synchronize query priority record",
    "event": "record wait query synchronize timing",
    "rng": "seed seed_all state generator fork deterministic",
    "dtype": "float64 float32 tf32 float16 bfloat16 float8_e4m3fn float8_e5m2 int64 int32 int16 "
    "int8 uint8 bool complex64 complex128 legacy_types",
    "autograd": "backward double_backward custom_function checkpoint transforms optimizers "
    "fused_optimizers parity",
    "amp": "autocast legacy bfloat16 float16 grad_scaler custom_fwd",
    "io": "save load map_location cuda_checkpoint portable_checkpoint safetensors dataloader numpy "
    "dlpack share profiler ranges",
    "error": "out_of_memory recovery refusal",
    "attn": "sdpa flash_attn_import",
}

_EMULATED = frozenset({"memory", "stream", "event"})
"""Families that answer, while the host has no allocator of a card and works in program order."""

_ONE_DEVICE = "There is one CPU, and the tensors of every device index are on it."
_HOST_MEMORY = "Memory is the host's, which gives more than it has and knows no limit."

_NEVER: dict[str, str] = {
    "device.multiple": _ONE_DEVICE,
    "device.peer_copy": _ONE_DEVICE,
    "device.visible": _ONE_DEVICE,
    "device.mismatch": _ONE_DEVICE,
    "device.utilization": "There is no card to measure.",
    "memory.fraction": _HOST_MEMORY,
    "memory.snapshot": _HOST_MEMORY,
    "memory.pool": _HOST_MEMORY,
    "memory.pinned": "All memory is the host's; nothing has to be pinned.",
    "memory.async_copy": "All memory is the host's; nothing is copied.",
    "stream.external": "There is no driver whose streams could be wrapped.",
    "event.ipc": "There is no driver whose events could be shared.",
    "error.bad_index": "PyTorch takes any index of the CPU for the one CPU.",
    "error.accelerator": "There is no accelerator that could fail.",
    "error.vendor_codes": "There is no vendor.",
}

_DIST = "Ranks share the one CPU; the checklist asks for a device for each."
_DIST_IDS = (
    "init nccl_name device_id broadcast all_reduce reduce all_gather reduce_scatter gather scatter "
    "all_to_all send_recv barrier objects coalesced async_op subgroups device_mesh ddp fsdp "
    "tensor_parallel"
)

_ATTENTION = "PyTorch's attention for the CPU answers; no plugin brings a kernel of its own."
_ATTENTION_IDS = (
    "fused backward causal mask dropout gqa varlen kvcache sliding_window softcap alibi "
    "transformers"
)


def _made() -> dict[str, tuple[Support, str]]:
    made: dict[str, tuple[Support, str]] = {}
    for family, text in _FULL.items():
        support = Support.EMULATED if family in _EMULATED else Support.FULL
        made |= {f"{family}.{ability}": (support, "") for ability in text.split()}
    made |= {f"dist.{ability}": (Support.NOT_YET, _DIST) for ability in _DIST_IDS.split()}
    made |= {f"attn.{ability}": (Support.NEVER, _ATTENTION) for ability in _ATTENTION_IDS.split()}
    return made | {name: (Support.NEVER, why) for name, why in _NEVER.items()}


CAPABILITIES: tuple[CapabilityClaim, ...] = tuple(
    CapabilityClaim(id=name, support=support, note=note)
    for name, (support, note) in _made().items()
)
"""What is not listed is unknown; conformance then says what it found."""
