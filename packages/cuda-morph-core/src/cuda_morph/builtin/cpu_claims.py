"""What the CPU claims to do when it stands for CUDA: it computes, and it is no card."""

from __future__ import annotations

from cuda_morph.records import CapabilityClaim, Support

_FULL: dict[str, str] = {
    "load": "install discovery isolation detection static_claims activation reversible inheritance",
    "device": "string index count current context synchronize properties name capability "
    "tensor_methods module_methods default",
    "memory": "allocated reserved summary peak_reset info empty_cache",
    "stream": "create current context default wait synchronize query priority record",
    "event": "record wait query synchronize timing",
    "rng": "seed seed_all state generator fork deterministic",
    "dtype": "float64 float32 tf32 float16 bfloat16 float8_e4m3fn float8_e5m2 int64 int32 int16 "
    "int8 uint8 bool complex64 complex128 legacy_types",
    "autograd": "backward double_backward custom_function checkpoint transforms optimizers "
    "fused_optimizers parity",
    "amp": "legacy bfloat16 float16 grad_scaler custom_fwd",
    "io": "save load map_location cuda_checkpoint portable_checkpoint dataloader numpy dlpack "
    "share ranges",
    "error": "out_of_memory accelerator refusal",
    "attn": "sdpa flash_attn_import",
    "compile": "dynamo aot inductor export training dynamic_shapes",
    "ext": "custom_op",
}

_EMULATED = frozenset({"memory", "stream", "event", "error"})
"""Families that answer, while the host has no allocator of a card, works in program order and
fails otherwise than a card."""

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
    "memory.async_copy": "All memory is the host's; nothing is copied.",
    "stream.external": "There is no driver whose streams could be wrapped.",
    "event.ipc": "There is no driver whose events could be shared.",
    "error.bad_index": "PyTorch takes any index of the CPU for the one CPU.",
    "error.recovery": _HOST_MEMORY,
    "error.vendor_codes": "There is no vendor.",
    "compile.triton": "Triton makes no code for the CPU.",
    **dict.fromkeys(
        ("graph.capture", "graph.replay", "graph.callables", "graph.pool"),
        "There is no queue of work that could be recorded.",
    ),
    **dict.fromkeys(
        ("ext.symbol_map", "ext.build", "ext.load"),
        "The host's compiler does not build CUDA sources.",
    ),
}

_PARTIAL: dict[str, str] = {
    "io.profiler": "Operators are recorded with the host's time; there is no device's.",
}

_NOT_YET: dict[str, str] = {
    "memory.stats": "PyTorch's allocator of the CPU keeps no counts; failures are not counted.",
    "memory.pinned": "Tensor.pin_memory() works; functions that make tensors refuse "
    "pin_memory=True.",
    "amp.autocast": "PyTorch's autocast of the CPU leaves softmax, norms and sums in bfloat16.",
    "io.safetensors": "safetensors makes tensors with pin_memory=True; see memory.pinned.",
}

_DIST = "Ranks share the one CPU; the checklist asks for a device for each."
_DIST_IDS = (
    "init nccl_name device_id broadcast all_reduce reduce all_gather reduce_scatter gather scatter "
    "all_to_all send_recv barrier objects coalesced async_op subgroups device_mesh ddp fsdp "
    "tensor_parallel launch"
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
    made |= {name: (Support.PARTIAL, why) for name, why in _PARTIAL.items()}
    made |= {name: (Support.NOT_YET, why) for name, why in _NOT_YET.items()}
    return made | {name: (Support.NEVER, why) for name, why in _NEVER.items()}


CAPABILITIES: tuple[CapabilityClaim, ...] = tuple(
    CapabilityClaim(id=name, support=support, note=note)
    for name, (support, note) in _made().items()
)
"""What is not listed is unknown; conformance then says what it found."""
