"""Facts about the examined plugin, as found in its own process, and what they are evidence of."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement

from cuda_morph.records import Support
from cuda_morph_conformance.vocabulary import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cuda_morph_conformance.subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the examined side says about itself; all fields are ready for JSON."""

    plugin: str
    dist: str | None = None
    version: str | None = None
    backend: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the `Backend` record that identify it."""
    activated: str = ""
    """What was activated: the plugin's name, or ``sim:<plugin>``."""
    simulated: bool = False
    """No accelerator stands behind the results."""
    details: Mapping[str, str] = field(default_factory=dict)
    """What detection said: ``driver`` and ``sdk`` count as evidence."""
    adapter: Mapping[str, str] = field(default_factory=dict)
    """The distribution that brings the adapter, with its version."""
    packages: Mapping[str, str] = field(default_factory=dict)
    claims: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Support, note and first version by capability id, where something was claimed."""
    devices: tuple[str, ...] = ()
    """Names of the devices, as the active plugin gave them."""
    tier: str = ""
    problem: str = ""
    """Why not all of this could be found out."""

    @property
    def support(self) -> dict[str, Support]:
        """The claims alone."""
        return {name: Support(claim["support"]) for name, claim in self.claims.items()}

    def as_dict(self) -> dict[str, Any]:
        """Returns the facts in a form ready for JSON."""
        return asdict(self)


def describe_subject(subject: Subject) -> dict[str, Any]:
    """Collect the facts that need no activation, in the process of the plugin.

    Args:
        subject: The plugin.

    Returns:
        Fields of `Facts`.
    """
    backend = subject.backend()
    detection = subject.detection()
    names = ("name", "display_name", "vendor", "device_type", "adapter_module", "spec", "homepage")
    hook = "cuda_morph_capabilities"
    claims = subject.call(hook) if subject.implements(hook) else ()
    adapter = _adapter(backend.adapter_module)
    return {
        "backend": {name: getattr(backend, name) for name in names},
        "activated": subject.backend_name,
        "simulated": subject.simulated,
        "details": {str(key): str(value) for key, value in detection.details.items()},
        "adapter": adapter,
        "packages": {**adapter, **_versions(backend.runtime_requires)},
        "claims": {
            claim.id: {
                "support": claim.support.value,
                "note": claim.note,
                "since": claim.since or "",
            }
            for claim in claims
        },
    }


def describe_environment() -> dict[str, str | None]:
    """Returns what the checks ran on: Python, platform and the packages that matter."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "torch": _version("torch"),
        "cuda-morph-core": _version("cuda-morph-core"),
        "cuda-morph-native": _version("cuda-morph-native"),
        "cuda-morph-sim": _version("cuda-morph-sim"),
    }


def decide_evidence(facts: Facts, *, used: bool) -> Evidence:
    """Tell what stood behind the device; hardware is never inferred from silence.

    Args:
        facts: What the examined side found.
        used: Whether a check that used the device passed.

    Returns:
        The class of evidence.
    """
    if not used:
        return Evidence.NONE
    own_adapter = bool(facts.adapter) and facts.dist not in facts.adapter
    if facts.details.get("runtime") == "simulated" and own_adapter:
        return Evidence.RUNTIME_SIMULATED
    if facts.simulated:
        return Evidence.SIMULATED
    recorded = facts.devices and facts.details.get("driver") and facts.details.get("sdk")
    return Evidence.HARDWARE if recorded else Evidence.NONE


def _adapter(module: str | None) -> dict[str, str]:
    root = (module or "").partition(".")[0]
    owners = packages_distributions().get(root, []) if root else []
    return {name: version(name) for name in sorted(set(owners))}


def _versions(requirements: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in requirements:
        try:
            name = Requirement(line).name
        except InvalidRequirement:
            continue
        installed = _version(name)
        if installed:
            found[name] = installed
    return found


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
