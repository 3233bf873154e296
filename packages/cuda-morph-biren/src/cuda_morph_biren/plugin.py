"""The plugin's hooks. Importing this module imports neither torch nor torch_supa."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph.adapter_detection import detect_adapter
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
    VersionRow,
)
from cuda_morph_biren import identity

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
    return identity.backend()


@hookimpl
def cuda_morph_detect() -> Detection:
    """Whether torch_supa works here and sees a card."""
    return detect_adapter(
        identity.backend(),
        identity.ADVICE,
        required_torch=identity.required_torch,
        shims=identity.SHIMS,
    )


@hookimpl
def cuda_morph_device_mapping() -> DeviceMapping:
    """``torch.supa`` answers for ``torch.cuda``."""
    return DeviceMapping(
        target="supa",
        module="torch.supa",
        init=_load,
    )


@hookimpl
def cuda_morph_api_mappings() -> Iterable[ApiMapping]:
    """Names of ``torch.supa`` for names of ``torch.cuda``."""
    return read_records(DATA / "api_mappings.json", ApiMapping)


@hookimpl
def cuda_morph_capabilities() -> Iterable[CapabilityClaim]:
    """What may be claimed from published documents and the simulated device."""
    return read_records(DATA / "claims.json", CapabilityClaim)


@hookimpl
def cuda_morph_collectives() -> Iterable[CollectiveBackend]:
    """BCCL stands for NCCL."""
    return identity.COLLECTIVES


@hookimpl
def cuda_morph_error_codes() -> Iterable[ErrorCode | ErrorRule]:
    """Codes of the runtime."""
    yield from read_records(DATA / "error_codes.json", ErrorCode)
    yield from read_records(DATA / "error_rules.json", ErrorRule)


@hookimpl
def cuda_morph_health_checks() -> Iterable[HealthCheck]:
    """Driver, SDK, versions and variables."""
    from cuda_morph_biren.health import CHECKS

    return CHECKS


@hookimpl
def cuda_morph_version_matrix() -> Iterable[VersionRow]:
    """Which torch_supa goes with which PyTorch."""
    return read_records(DATA / "versions.json", VersionRow)


@hookimpl
def cuda_morph_dtypes() -> Iterable[DtypeSupport]:
    """The dtypes that are known to be special."""
    return read_records(DATA / "dtypes.json", DtypeSupport)


@hookimpl
def cuda_morph_extension_toolchain() -> ExtensionToolchain:
    """Files that end in .su or .cu are compiled with brcc."""
    return ExtensionToolchain(
        compiler="brcc",
        extension_class="torch_supa.utils.cpp_extension.SupaExtension",
    )


@hookimpl
def cuda_morph_surface() -> AdapterSurface:
    """The names of ``torch.supa``."""
    return read_surface(DATA / "surface.json")


@hookimpl
def cuda_morph_personality() -> Personality:
    """How a simulated device poses as torch_supa."""
    from cuda_morph_biren.personality import PERSONALITY

    return PERSONALITY


def _load() -> object:
    return importlib.import_module(str(identity.backend().adapter_module))
