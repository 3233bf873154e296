"""The plugin's hooks. Importing this module imports neither torch nor torch_npu."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph.adapter_detection import detect_adapter
from cuda_morph.hookspecs import hookimpl
from cuda_morph.record_files import read_map, read_records, read_surface
from cuda_morph.records import (
    ApiMapping,
    AttentionKernel,
    CapabilityClaim,
    DeviceMapping,
    DtypeSupport,
    ErrorCode,
    ErrorRule,
    ExtensionToolchain,
    QuantizationMethod,
    VersionRow,
)
from cuda_morph_ascend import identity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cuda_morph.records import (
        AdapterSurface,
        Backend,
        CollectiveBackend,
        Detection,
        HealthCheck,
        Personality,
    )

DATA = Path(__file__).with_name("data")


@hookimpl
def cuda_morph_backend() -> Backend:
    """Identity of the accelerator."""
    return identity.BACKEND


@hookimpl
def cuda_morph_detect() -> Detection:
    """Whether torch_npu works here and sees a card."""
    return detect_adapter(
        identity.BACKEND,
        identity.ADVICE,
        required_torch=identity.required_torch,
        shims=identity.SHIMS,
    )


@hookimpl
def cuda_morph_device_mapping() -> DeviceMapping:
    """``torch.npu`` answers for ``torch.cuda``."""
    return DeviceMapping(
        target="npu",
        module="torch.npu",
        init=_load,
        compute_capability=identity.compute_capability(),
    )


@hookimpl
def cuda_morph_api_mappings() -> Iterable[ApiMapping]:
    """Names of ``torch.npu`` for names of ``torch.cuda``."""
    return read_records(DATA / "api_mappings.json", ApiMapping)


@hookimpl
def cuda_morph_capabilities() -> Iterable[CapabilityClaim]:
    """What may be claimed from published documents and the simulated device."""
    return read_records(DATA / "claims.json", CapabilityClaim)


@hookimpl
def cuda_morph_collectives() -> Iterable[CollectiveBackend]:
    """HCCL stands for NCCL."""
    return identity.COLLECTIVES


@hookimpl
def cuda_morph_attention_kernels() -> Iterable[AttentionKernel]:
    """A flash_attn made for the card if it is installed, else the adapter's fused operators."""
    from cuda_morph_ascend import attention, native_flash_attention

    yield AttentionKernel(
        name="flash_attn_npu",
        forward=native_flash_attention.forward,
        varlen=native_flash_attention.varlen,
        features=native_flash_attention.FEATURES,
        max_head_dim=256,
        priority=10,
    )
    yield AttentionKernel(
        name="npu_fusion_attention",
        forward=attention.forward,
        varlen=attention.varlen,
        kvcache=attention.kvcache,
        mask_convention="true_masks",
        dtypes=("float16", "bfloat16", "float32"),
        features=attention.FEATURES,
        max_head_dim=attention.MAX_HEAD_DIM,
    )


@hookimpl
def cuda_morph_error_codes() -> Iterable[ErrorCode | ErrorRule]:
    """Codes of CANN, HCCL and torch_npu."""
    yield from read_records(DATA / "error_codes.json", ErrorCode)
    yield from read_records(DATA / "error_rules.json", ErrorRule)


@hookimpl
def cuda_morph_health_checks() -> Iterable[HealthCheck]:
    """Driver, CANN, versions and variables."""
    from cuda_morph_ascend.health import CHECKS

    return CHECKS


@hookimpl
def cuda_morph_version_matrix() -> Iterable[VersionRow]:
    """Which torch_npu goes with which PyTorch and CANN."""
    return read_records(DATA / "versions.json", VersionRow)


@hookimpl
def cuda_morph_dtypes() -> Iterable[DtypeSupport]:
    """Dtypes of the vendor's operators."""
    return read_records(DATA / "dtypes.json", DtypeSupport)


@hookimpl
def cuda_morph_quantization() -> Iterable[QuantizationMethod]:
    """Methods that a published library lists for the card."""
    return read_records(DATA / "quantization.json", QuantizationMethod)


@hookimpl
def cuda_morph_extension_toolchain() -> ExtensionToolchain:
    """C++ only: there is no compiler for device code behind PyTorch's extensions."""
    return ExtensionToolchain(
        compiler="c++",
        extension_class="torch_npu.utils.cpp_extension.NpuExtension",
        symbol_map=read_map(DATA / "symbols.json"),
    )


@hookimpl
def cuda_morph_surface() -> AdapterSurface:
    """The names of ``torch.npu``."""
    return read_surface(DATA / "surface.json")


@hookimpl
def cuda_morph_personality() -> Personality:
    """How a simulated device poses as torch_npu."""
    from cuda_morph_ascend.personality import PERSONALITY

    return PERSONALITY


def _load() -> object:
    return importlib.import_module("torch_npu")
