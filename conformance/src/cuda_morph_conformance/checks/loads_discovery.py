"""Level ``loads``: the plugin is found, and its wheel says the right things."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cuda_morph.hook_table import HOOKS
from cuda_morph.plugin_status import USABLE
from cuda_morph.plugins import PluginStatus, get_plugin
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from cuda_morph_conformance.subject import Subject

_CORE = "cuda-morph-core"


@check("CM-LOAD-001", level=Level.LOADS, since="0.1")
def found_once(subject: Subject) -> None:
    """Exactly one installed distribution MUST claim the plugin's name.

    Fix: choose another name, or uninstall the distribution that should not be here.
    """
    owners = [entry.dist.name if entry.dist else "?" for entry in subject.entries]
    require(len(owners) == 1, f"{len(owners)} entry points: {', '.join(owners)}")


@check("CM-LOAD-002", level=Level.LOADS, since="0.1")
def depends_on_core(subject: Subject) -> None:
    """The distribution MUST declare a dependency on cuda-morph-core with an upper bound.

    Fix: add ``"cuda-morph-core>=0.10,<0.11"`` to ``dependencies`` in pyproject.toml.
    """
    if canonicalize_name(subject.distribution.name) == _CORE:
        return
    found = [need for need in _requirements(subject) if canonicalize_name(need.name) == _CORE]
    require(found, f"{subject.distribution.name} does not depend on {_CORE}")
    bounded = any(spec.operator in {"<", "<=", "==", "~="} for spec in found[0].specifier)
    require(bounded, f"{found[0]} has no upper bound")


@check("CM-LOAD-003", level=Level.LOADS, since="0.1")
def leaves_torch_alone(subject: Subject) -> None:
    """Installing the plugin MUST NOT install or replace PyTorch.

    Fix: move torch, and adapters that depend on it, into an extra such as ``runtime``.
    """
    hard = [
        str(need)
        for need in _requirements(subject)
        if canonicalize_name(need.name) in {"torch", "pytorch"}
        and (need.marker is None or need.marker.evaluate({"extra": ""}))
    ]
    require(not hard, f"hard dependency: {', '.join(hard)}")


@check("CM-LOAD-004", level=Level.LOADS, since="0.1")
def stays_out_of_autoload(subject: Subject) -> None:
    """The distribution MUST NOT register in the entry-point group torch.backends.

    PyTorch loads that group during ``import torch`` and one failing entry makes the import fail;
    core registers there, once, for all plugins.

    Fix: remove the entry point; core loads the plugin at activation.
    """
    if canonicalize_name(subject.distribution.name) == _CORE:
        return
    groups = {entry.group for entry in subject.distribution.entry_points}
    require("torch.backends" not in groups, "it has a torch.backends entry point")


@check("CM-LOAD-005", level=Level.LOADS, since="0.1")
def implements_known_hooks(subject: Subject) -> None:
    """The plugin MUST implement both required hooks and no hook that core does not know.

    Fix: compare the function names with ``cuda_morph.hookspecs``; a misspelt hook is never called.
    """
    required = [name for name, hook in HOOKS.items() if hook.required]
    absent = [name for name in required if not subject.implements(name)]
    require(not absent, f"not implemented: {', '.join(absent)}")
    known = set(HOOKS)
    own = {caller.name for caller in subject.manager.get_hookcallers(subject.plugin) or []}
    unmarked = {
        name
        for name in vars(subject.plugin)
        if name.startswith("cuda_morph_") and callable(getattr(subject.plugin, name))
    }
    unknown = sorted((own | unmarked) - known)
    require(not unknown, f"unknown to core: {', '.join(unknown)}")
    forgotten = sorted((unmarked & known) - own)
    require(not forgotten, f"defined but not marked with @hookimpl: {', '.join(forgotten)}")


@check("CM-LOAD-006", level=Level.LOADS, since="0.1")
def core_accepts_it(subject: Subject) -> None:
    """Core's discovery MUST list the plugin as ready, or as unavailable with a reason.

    Fix: run ``cuda-morph plugins`` and repair what its row says.
    """
    row = get_plugin(subject.name, detect=True)
    require(row.status in USABLE, f"{row.status.value}: {row.reason}")
    require(row.status is PluginStatus.READY or row.reason, "unavailable, without a reason")


def _requirements(subject: Subject) -> list[Requirement]:
    return [Requirement(line) for line in subject.distribution.requires or []]
