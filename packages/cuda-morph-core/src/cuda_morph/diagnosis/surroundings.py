"""The block that goes into a bug report: versions, plugins and variables; no secrets."""

from __future__ import annotations

import os
import platform
import re
import shutil
from dataclasses import fields
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph.diagnosis.entry_points import distribution_name
from cuda_morph.torch_build import torch_build
from cuda_morph.torch_facts import torch_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cuda_morph.plugin_status import PluginRow

_PREFIXES = ("CUDA", "NCCL_", "TORCH", "PYTORCH_", "LD_LIBRARY_PATH", "LD_PRELOAD")
_NAMES = frozenset({"CC", "CXX", "OMP_NUM_THREADS", "PYTHONPATH", "MASTER_ADDR", "MASTER_PORT"})
_RANKS = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"})
_SECRET = re.compile(r"TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE|(^|_)KEY", re.IGNORECASE)
_LOGIN = re.compile(r"//[^/@\s]*@")
_LONGEST = 500


def block(rows: Iterable[PluginRow], states: Mapping[str, str]) -> list[tuple[str, str]]:
    """Describes this environment. PyTorch is not imported.

    Args:
        rows: The plugins.
        states: What detection said, by plugin.

    Returns:
        Labels and texts.
    """
    rows = tuple(rows)
    facts = [
        ("os", f"{platform.platform()} ({_distribution()})"),
        ("python", f"{platform.python_version()} ({platform.python_implementation()})"),
        ("torch", _torch()),
        ("compiler", cpp_compiler() or "none found"),
    ]
    facts += sorted(_distributions())
    facts += [(f"plugin {row.name}", states.get(row.name, row.status.value)) for row in rows]
    return facts + [(name, shown(name)) for name in relevant_variables(rows)]


def relevant_variables(rows: Iterable[PluginRow]) -> list[str]:
    """Lists the variables that are set and matter.

    Args:
        rows: The plugins; variables that start like one of theirs matter too.

    Returns:
        Their names, sorted.
    """
    own = [
        name
        for row in rows
        if (backend := row.backend) is not None
        for name in (backend.visible_devices_env, backend.alloc_conf_env)
        if name
    ]
    prefixes = (*_PREFIXES, *(f"{name.partition('_')[0]}_" for name in own))
    return sorted(
        name for name in os.environ if name.startswith(prefixes) or name in _NAMES | _RANKS
    )


def shown(name: str) -> str:
    """Returns a variable's value in a form for others to read.

    Args:
        name: The variable.

    Returns:
        One line; what may be a secret is left out, the home folder is ``~``.
    """
    if _SECRET.search(name):
        return "(left out)"
    text = _LOGIN.sub("//(left out)@", os.environ[name])
    home = str(Path.home())
    if len(home) > 1:
        text = text.replace(home, "~")
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _torch() -> str:
    version, build = torch_version(), torch_build()
    if version is None and build is None:
        return "not installed"
    if build is None:
        return f"{version} (its files cannot be read)"
    platforms = (item.name for item in fields(build) if item.name != "version")
    made_for = [f"{name} {text}" for name in platforms if (text := getattr(build, name))]
    return f"{build.version} (built for {', '.join(made_for) or 'cpu'})"


def cpp_compiler() -> str | None:
    """Returns the path of the C++ compiler that ``CXX`` names, or of a usual one."""
    chosen = os.environ.get("CXX", "").split()[:1]
    found = (shutil.which(name) for name in chosen or ("c++", "g++", "clang++"))
    return next(filter(None, found), None)


def _distributions() -> set[tuple[str, str]]:
    found = ((distribution_name(dist), dist) for dist in metadata.distributions())
    own = ((name, dist) for name, dist in found if name.startswith("cuda-morph"))
    return {(name, str(dist.metadata["Version"] or "of no version")) for name, dist in own}


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return platform.system()
