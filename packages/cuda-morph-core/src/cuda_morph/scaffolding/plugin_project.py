"""A new plugin as files: it installs, is found and keeps the contract; facts are left as blanks."""

from __future__ import annotations

import json
import keyword
import re

from cuda_morph import get_version, plugins
from cuda_morph.errors import SettingError
from cuda_morph.frozen_record import frozen_record
from cuda_morph.records import SPEC
from cuda_morph.scaffolding.project_files import TEMPLATES, render
from cuda_morph.torch_facts import DEVICE_TYPE_IDS

_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_DEVICE_TYPE = re.compile(r"[a-z][a-z_]*")
_MODULE = re.compile(r"[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)*", re.IGNORECASE | re.ASCII)
_COLLECTIVE = re.compile(r"[a-z][a-z0-9_]*")
_VENDOR = re.compile(r"[^\W_][\w .,&()+-]{0,59}")
_LONGEST = 32

RESERVED = frozenset(
    {"cpu", "cuda", "sim", "core", "native", "conformance", "auto", "none", "test"}
)
"""Names of cuda-morph's own plugins and packages, and words that mean something else."""
_RESERVED_TYPES = frozenset({*DEVICE_TYPE_IDS, "meta", "privateuseone", "ipu", "maia", "vulkan"})
_RESERVED_MODULES = frozenset({"torch", "cuda_morph"})


@frozen_record
class NewPlugin:
    """What is known of a plugin before it exists; everything was found good."""

    name: str
    vendor: str
    device_type: str
    adapter_module: str
    collective: str | None

    @property
    def distribution(self) -> str:
        """Name of the distribution; also of the folder."""
        return f"cuda-morph-{self.name.replace('_', '-')}"

    @property
    def package(self) -> str:
        """Name of the Python package."""
        return f"cuda_morph_{self.name.replace('-', '_')}"


def describe(
    name: str,
    *,
    device_type: str | None = None,
    vendor: str | None = None,
    adapter_module: str | None = None,
    collective: str | None = None,
) -> NewPlugin:
    """Checks what the author says and completes it.

    Args:
        name: Of the plugin, as given to ``--backend``.
        device_type: As PyTorch prints it; by default the letters of the name.
        vendor: By default the name, capitalised.
        adapter_module: What registers the device; by default ``torch_`` and the device type.
        collective: Name that ``init_process_group`` takes, where the adapter has one.

    Returns:
        The description.

    Raises:
        SettingError: A word cannot be what it is meant for.
    """
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise SettingError(
            f"{name!r} is no name for a plugin.",
            hint=f"Up to {_LONGEST} lower-case letters, digits, - and _; a letter comes first.",
        )
    if name in RESERVED:
        raise SettingError(f"The name {name!r} is reserved.", hint="Choose another name.")
    kind = _device_type(device_type, re.sub(r"[0-9]", "", name.replace("-", "_")).strip("_"))
    return NewPlugin(
        name=name,
        vendor=_vendor(vendor, " ".join(re.split("[-_]", name)).title()),
        device_type=kind,
        adapter_module=_module(adapter_module, f"torch_{kind}"),
        collective=_collective(collective),
    )


def is_taken(name: str) -> bool:
    """Tells whether a plugin of that name is installed here.

    Args:
        name: Of the plugin.

    Returns:
        True where two of one name would be in conflict.
    """
    return name in plugins.plugin_names()


def plugin_files(plugin: NewPlugin) -> dict[str, str]:
    """Writes the plugin's files.

    Args:
        plugin: What is known.

    Returns:
        Texts by path below the project's folder.
    """
    major, minor = get_version().split(".")[:2]
    collective = plugin.collective
    values = {
        "name": plugin.name,
        "distribution": plugin.distribution,
        "package": plugin.package,
        "vendor": plugin.vendor,
        "device": plugin.device_type,
        "adapter": plugin.adapter_module,
        "adapter_distribution": plugin.adapter_module.partition(".")[0]
        .replace("_", "-")
        .strip("-"),
        "core": f">={major}.{minor},<{major}.{int(minor) + 1}",
        "spec": SPEC,
        "collective": "None" if collective is None else json.dumps(collective),
        "collectives": _collectives(plugin),
    }
    return render(TEMPLATES / "plugin", values)


def _collectives(plugin: NewPlugin) -> str:
    if plugin.collective is None:
        return "()"
    return (
        "(\n    CollectiveBackend(\n"
        f'        name="{plugin.collective}",\n'
        f'        device_types=("{plugin.device_type}",),\n'
        "    ),\n)"
    )


def _device_type(given: str | None, default: str) -> str:
    kind = default if given is None else given
    if not _DEVICE_TYPE.fullmatch(kind) or len(kind) > _LONGEST:
        raise SettingError(
            f"{kind!r} is no device type.",
            hint="PyTorch reads small letters and _ in it, and no digits: give --device-type.",
        )
    if kind in _RESERVED_TYPES or keyword.iskeyword(kind):
        raise SettingError(
            f"The device type {kind!r} is PyTorch's own.",
            hint="A plugin for it has no adapter of its own and is not made from this template; "
            "see the plugin author guide. Otherwise give --device-type.",
        )
    return kind


def _vendor(given: str | None, default: str) -> str:
    vendor = default if given is None else given
    if not _VENDOR.fullmatch(vendor):
        raise SettingError(
            f"{vendor!r} cannot be written as a vendor's name.",
            hint="Up to 60 letters, digits, spaces and . , & ( ) + - in one line.",
        )
    return vendor.strip()


def _module(given: str | None, default: str) -> str:
    module = default if given is None else given
    parts = module.split(".")
    if (
        not _MODULE.fullmatch(module)
        or len(module) > _LONGEST
        or any(keyword.iskeyword(part) for part in parts)
    ):
        raise SettingError(
            f"{module!r} is no name of a module.", hint="Give it as it is imported: torch_mychip."
        )
    if parts[0] in _RESERVED_MODULES:
        raise SettingError(
            f"The adapter cannot be {module!r}.", hint="Name the vendor's own module."
        )
    return module


def _collective(given: str | None) -> str | None:
    if given is not None and (
        not _COLLECTIVE.fullmatch(given) or len(given) > _LONGEST or given == "nccl"
    ):
        raise SettingError(
            f"{given!r} cannot be the collective backend.",
            hint="Give the name that the vendor's adapter registers: small letters, digits and _.",
        )
    return given
