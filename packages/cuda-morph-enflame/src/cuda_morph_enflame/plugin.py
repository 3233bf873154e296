"""The plugin's hooks. Importing this module imports neither torch nor torch_gcu."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph.adapter_detection import detect_adapter
from cuda_morph.hookspecs import hookimpl
from cuda_morph.record_files import read_map, read_records, read_surface
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
from cuda_morph_enflame import identity

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
    """Whether torch_gcu works here and sees a card."""
    return detect_adapter(
        identity.BACKEND,
        identity.ADVICE,
        required_torch=identity.required_torch,
        shims=identity.SHIMS,
    )


@hookimpl
def cuda_morph_device_mapping() -> DeviceMapping:
    """``torch.gcu`` answers for ``torch.cuda``."""
    return DeviceMapping(
        target="gcu",
        module="torch.gcu",
        init=_load,
    )


@hookimpl
def cuda_morph_api_mappings() -> Iterable[ApiMapping]:
    """Names of ``torch.gcu`` for names of ``torch.cuda``."""
    return read_records(DATA / "api_mappings.json", ApiMapping)


@hookimpl
def cuda_morph_capabilities() -> Iterable[CapabilityClaim]:
    """What may be claimed from published documents and the simulated device."""
    return read_records(DATA / "claims.json", CapabilityClaim)


@hookimpl
def cuda_morph_collectives() -> Iterable[CollectiveBackend]:
    """ECCL stands for NCCL."""
    return identity.COLLECTIVES


@hookimpl
def cuda_morph_error_codes() -> Iterable[ErrorCode | ErrorRule]:
    """Codes of the TOPS runtime."""
    yield from read_records(DATA / "error_codes.json", ErrorCode)
    yield from read_records(DATA / "error_rules.json", ErrorRule)


@hookimpl
def cuda_morph_health_checks() -> Iterable[HealthCheck]:
    """Driver, TopsRider, versions and variables."""
    from cuda_morph_enflame.health import CHECKS

    return CHECKS


@hookimpl
def cuda_morph_version_matrix() -> Iterable[VersionRow]:
    """Which torch_gcu goes with which PyTorch and TopsRider."""
    return read_records(DATA / "versions.json", VersionRow)


@hookimpl
def cuda_morph_dtypes() -> Iterable[DtypeSupport]:
    """The dtypes that are known to be special."""
    return read_records(DATA / "dtypes.json", DtypeSupport)


@hookimpl
def cuda_morph_quantization() -> Iterable[QuantizationMethod]:
    """Methods that a published library lists for the card."""
    return read_records(DATA / "quantization.json", QuantizationMethod)


@hookimpl
def cuda_morph_extension_toolchain() -> ExtensionToolchain:
    """Kernels are compiled with topscc; torch_gcu has no extension class of its own."""
    return ExtensionToolchain(
        compiler="topscc",
        symbol_map=read_map(DATA / "symbols.json"),
    )


@hookimpl
def cuda_morph_surface() -> AdapterSurface:
    """The names of ``torch.gcu``."""
    return read_surface(DATA / "surface.json")


@hookimpl
def cuda_morph_personality() -> Personality:
    """How a simulated device poses as torch_gcu."""
    from cuda_morph_enflame.personality import PERSONALITY

    return PERSONALITY


def _load() -> object:
    return importlib.import_module("torch_gcu")
