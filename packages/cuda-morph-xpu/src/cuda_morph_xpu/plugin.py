"""The plugin's hooks. Importing this module does not import torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph.adapter_detection import detect_native
from cuda_morph.hookspecs import hookimpl
from cuda_morph.record_files import read_records, read_surface
from cuda_morph.records import (
    ApiMapping,
    CapabilityClaim,
    DeviceMapping,
    DtypeSupport,
    ErrorCode,
    ErrorRule,
    ExtensionToolchain,
    QuantizationMethod,
    VersionRow,
)
from cuda_morph_xpu import identity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cuda_morph.records import (
        AdapterSurface,
        Backend,
        CollectiveBackend,
        Detection,
        HealthCheck,
    )

DATA = Path(__file__).with_name("data")


@hookimpl
def cuda_morph_backend() -> Backend:
    """Identity of the accelerator."""
    return identity.BACKEND


@hookimpl
def cuda_morph_detect() -> Detection:
    """Whether PyTorch is built for Intel GPUs and sees one."""
    return detect_native(identity.BACKEND, identity.ADVICE, wrong_build=identity.wrong_build)


@hookimpl
def cuda_morph_device_mapping() -> DeviceMapping:
    """``torch.xpu`` answers for ``torch.cuda``; its capability is no pair, so ``(0, 0)`` is."""
    return DeviceMapping(target="xpu", module="torch.xpu")


@hookimpl
def cuda_morph_api_mappings() -> Iterable[ApiMapping]:
    """Names of ``torch.xpu`` for names of ``torch.cuda``."""
    return read_records(DATA / "api_mappings.json", ApiMapping)


@hookimpl
def cuda_morph_dtypes() -> Iterable[DtypeSupport]:
    """The dtypes that are known to be special."""
    return read_records(DATA / "dtypes.json", DtypeSupport)


@hookimpl
def cuda_morph_surface() -> AdapterSurface:
    """The names of ``torch.xpu``."""
    return read_surface(DATA / "surface.json")


@hookimpl
def cuda_morph_capabilities() -> Iterable[CapabilityClaim]:
    """What may be claimed from published documents."""
    return read_records(DATA / "claims.json", CapabilityClaim)


@hookimpl
def cuda_morph_collectives() -> Iterable[CollectiveBackend]:
    """What PyTorch registers for the card."""
    return identity.COLLECTIVES


@hookimpl
def cuda_morph_error_codes() -> Iterable[ErrorCode | ErrorRule]:
    """Codes of Level Zero, Unified Runtime and SYCL, and what PyTorch says around them."""
    yield from read_records(DATA / "error_codes.json", ErrorCode)
    yield from read_records(DATA / "error_rules.json", ErrorRule)


@hookimpl
def cuda_morph_health_checks() -> Iterable[HealthCheck]:
    """Driver, build of PyTorch and variables."""
    from cuda_morph_xpu.health import CHECKS

    return CHECKS


@hookimpl
def cuda_morph_version_matrix() -> Iterable[VersionRow]:
    """Builds that were seen."""
    return read_records(DATA / "versions.json", VersionRow)


@hookimpl
def cuda_morph_quantization() -> Iterable[QuantizationMethod]:
    """Methods that a published library lists for the card."""
    return read_records(DATA / "quantization.json", QuantizationMethod)


@hookimpl
def cuda_morph_extension_toolchain() -> ExtensionToolchain:
    """SYCL sources, files that end in .sycl; PyTorch has no table from CUDA to SYCL."""
    return ExtensionToolchain(
        compiler="icpx", extension_class="torch.utils.cpp_extension.SyclExtension"
    )
