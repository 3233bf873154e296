"""How core calls each hook and what it accepts as an answer."""

from __future__ import annotations

import inspect
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from cuda_morph import hookspecs, records
from cuda_morph.frozen_record import frozen_record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@frozen_record
class HookInfo:
    """How core calls one hook and what it accepts as an answer."""

    name: str
    records: tuple[type, ...]
    """Types of the records that may come back."""
    many: bool
    """True: an iterable of records. False: one record, or ``None`` when not required."""
    required: bool
    called: str
    """When core calls it."""
    vendor_library: Literal["no", "may", "yes"]
    """Whether the implementation may import torch and the vendor's library."""
    arguments: tuple[str, ...]
    """Names of the arguments; an implementation may take fewer."""


def _hook(
    spec: Callable[..., object],
    *types: type,
    called: str,
    vendor_library: Literal["no", "may", "yes"] = "no",
    many: bool = True,
    required: bool = False,
) -> HookInfo:
    return HookInfo(
        name=spec.__name__,
        records=types,
        many=many,
        required=required,
        called=called,
        vendor_library=vendor_library,
        arguments=tuple(inspect.signature(spec).parameters),
    )


_TABLE = (
    _hook(hookspecs.cuda_morph_backend, records.Backend, called="load", many=False, required=True),
    _hook(
        hookspecs.cuda_morph_detect,
        records.Detection,
        called="selection",
        vendor_library="may",
        many=False,
        required=True,
    ),
    _hook(
        hookspecs.cuda_morph_device_mapping,
        records.DeviceMapping,
        called="activation",
        vendor_library="yes",
        many=False,
    ),
    _hook(hookspecs.cuda_morph_api_mappings, records.ApiMapping, called="scan, docs, activation"),
    _hook(
        hookspecs.cuda_morph_capabilities,
        records.CapabilityClaim,
        called="conformance, docs, explain",
    ),
    _hook(
        hookspecs.cuda_morph_collectives,
        records.CollectiveBackend,
        called="activation",
        vendor_library="yes",
    ),
    _hook(
        hookspecs.cuda_morph_attention_kernels,
        records.AttentionKernel,
        called="activation, on demand",
        vendor_library="yes",
    ),
    _hook(hookspecs.cuda_morph_error_codes, records.ErrorCode, records.ErrorRule, called="error"),
    _hook(
        hookspecs.cuda_morph_health_checks,
        records.HealthCheck,
        called="doctor",
        vendor_library="may",
    ),
    _hook(hookspecs.cuda_morph_version_matrix, records.VersionRow, called="doctor"),
    _hook(hookspecs.cuda_morph_dtypes, records.DtypeSupport, called="activation"),
    _hook(hookspecs.cuda_morph_quantization, records.QuantizationMethod, called="quant"),
    _hook(hookspecs.cuda_morph_patches, records.Patch, called="activation", vendor_library="yes"),
    _hook(
        hookspecs.cuda_morph_extension_toolchain,
        records.ExtensionToolchain,
        called="C++ extension building",
        many=False,
    ),
    _hook(
        hookspecs.cuda_morph_codegen_targets,
        records.CodegenTarget,
        called="compile",
        vendor_library="may",
    ),
    _hook(
        hookspecs.cuda_morph_surface,
        records.AdapterSurface,
        called="explain, check, simulation",
        many=False,
    ),
    _hook(
        hookspecs.cuda_morph_personality,
        records.Personality,
        called="simulation",
        many=False,
    ),
    _hook(
        hookspecs.cuda_morph_simulate,
        records.Simulation,
        called="selection of a simulated backend",
        vendor_library="may",
        many=False,
    ),
    _hook(
        hookspecs.cuda_morph_execution_backends,
        records.ExecutionBackend,
        called="run of a compiled program",
        vendor_library="may",
    ),
)

HOOKS: Mapping[str, HookInfo] = MappingProxyType({info.name: info for info in _TABLE})
"""Every hook by name."""
