"""The plugin's hooks. Importing this module does not import torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph.adapter_detection import detect_native
from cuda_morph.hookspecs import hookimpl
from cuda_morph.record_files import read_map, read_records
from cuda_morph.records import (
    CapabilityClaim,
    ErrorCode,
    ExtensionToolchain,
    QuantizationMethod,
    VersionRow,
)
from cuda_morph_metax import identity

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
    """Whether PyTorch is the vendor's build and sees a card."""
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
def cuda_morph_error_codes() -> Iterable[ErrorCode]:
    """Codes of the MACA runtime."""
    return read_records(DATA / "error_codes.json", ErrorCode)


@hookimpl
def cuda_morph_health_checks() -> Iterable[HealthCheck]:
    """Driver, build of PyTorch and variables."""
    from cuda_morph_metax.health import CHECKS

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
    """CUDA sources compile under CUDA's names, through the vendor's cu-bridge."""
    return ExtensionToolchain(
        compiler="nvcc",
        env={"CUCC_PATH": "$MACA_PATH/tools/cu-bridge", "CUDA_PATH": "~/cu-bridge/CUDA_DIR"},
        extension_class="torch.utils.cpp_extension.CUDAExtension",
        symbol_map=read_map(DATA / "symbols.json"),
    )
