"""The plugin's hooks. Importing this module does not import torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph.adapter_detection import detect_native
from cuda_morph.hookspecs import hookimpl
from cuda_morph.record_files import read_records
from cuda_morph.records import (
    CapabilityClaim,
    ErrorCode,
    ErrorRule,
    ExtensionToolchain,
    QuantizationMethod,
    VersionRow,
)
from cuda_morph_rocm import identity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cuda_morph.records import Backend, CollectiveBackend, Detection, HealthCheck

DATA = Path(__file__).with_name("data")


@hookimpl
def cuda_morph_backend() -> Backend:
    """Identity of the accelerator."""
    return identity.BACKEND


@hookimpl
def cuda_morph_detect() -> Detection:
    """Whether PyTorch is built for ROCm and sees a card."""
    return detect_native(identity.BACKEND, identity.ADVICE, wrong_build=identity.wrong_build)


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
    """Codes of HIP and RCCL, and what PyTorch says around them."""
    yield from read_records(DATA / "error_codes.json", ErrorCode)
    yield from read_records(DATA / "error_rules.json", ErrorRule)


@hookimpl
def cuda_morph_health_checks() -> Iterable[HealthCheck]:
    """Driver, build of PyTorch and variables."""
    from cuda_morph_rocm.health import CHECKS

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
    """CUDA sources are renamed by PyTorch itself, with the table of its hipify module."""
    return ExtensionToolchain(
        compiler="hipcc", extension_class="torch.utils.cpp_extension.CUDAExtension"
    )
