"""Which ``torch.compile`` backend to name, which are registered, and what plugins claim."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cuda_morph import simulation
from cuda_morph.compile_backend import INDUCTOR, WITHOUT_CODE
from cuda_morph.diagnosis import contained
from cuda_morph.diagnosis.entry_points import in_group
from cuda_morph.diagnosis.finding import Finding, Level, any_failed
from cuda_morph.diagnosis.surroundings import cpp_compiler
from cuda_morph.frozen_record import frozen_record
from cuda_morph.plugins import collect, get_plugin
from cuda_morph.torch_facts import torch_version

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUP = "torch_dynamo_backends"
SECONDS = 180.0
"""Importing Dynamo and, where asked for, one compilation with a C++ compiler."""
_KIND, _TRIED = "compile", "compile-and-run"


@frozen_record
class Compiler:
    """A backend that Dynamo knows by name."""

    name: str
    tags: tuple[str, ...]
    source: str
    """The distribution that brings it."""


@frozen_record
class Claim:
    """What a plugin claims about compilation."""

    backend: str
    id: str
    support: str
    note: str


@frozen_record
class Advice:
    """The whole answer."""

    backend: str | None
    """The backend of cuda-morph that was activated."""
    choice: str | None
    """What ``get_compile_backend()`` says there; ``None`` when that failed."""
    why: str
    registered: tuple[Compiler, ...]
    claims: tuple[Claim, ...]
    findings: tuple[Finding, ...]

    @property
    def failed(self) -> bool:
        """Whether something does not work."""
        return any_failed(self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Returns the answer as JSON-ready values."""
        return {
            "backend": self.backend,
            "choice": self.choice,
            "why": self.why,
            "registered": [asdict(one) for one in self.registered],
            "claims": [asdict(one) for one in self.claims],
            "findings": [one.as_dict() for one in self.findings],
        }


def advise(backend: str | None = None, *, full: bool = False, seconds: float = SECONDS) -> Advice:
    """Asks PyTorch, in a child process, and the plugins.

    Args:
        backend: What to activate there, such as ``sim``; ``None`` activates nothing.
        full: Also compiles a small function and compares its result with PyTorch's own.
        seconds: Time for the child process.

    Returns:
        The answer.

    Raises:
        UnknownBackendError: There is no such plugin.
        SettingError: The plugin before a colon simulates nothing.
    """
    plugin = None if backend is None else _plugin(backend)
    claims = tuple(
        Claim(backend=name, id=record.id, support=record.support.value, note=record.note)
        for name, record in collect(
            "cuda_morph_capabilities", plugin=plugin, torch_version=torch_version()
        )
        if record.id.startswith("compile.")
    )
    kind = _TRIED if full else _KIND
    asked, *tried = contained.run(kind, [backend or ""], seconds=seconds)
    answer = asked.answer or {}
    findings = [_compiler()]
    problem = next((one.error for one in (asked, *tried) if one.error), "")
    if problem:
        fix = "cuda-morph doctor examines the installation."
        if plugin is not None:
            fix = f"cuda-morph doctor --plugin {plugin} examines the installation."
        findings.append(Finding(id="compile", level=Level.FAIL, message=problem, fix=fix))
    elif full:
        text = f"a function compiled with {answer['choice']} gives PyTorch's own result"
        findings.append(Finding(id="compile", level=Level.OK, message=text))
    return Advice(
        backend=backend,
        choice=answer.get("choice"),
        why=_why(answer),
        registered=tuple(_registered(answer)),
        claims=claims,
        findings=tuple(findings),
    )


def _plugin(backend: str) -> str:
    simulator, colon, subject = backend.partition(":")
    get_plugin(simulator)
    return simulation.check(simulator, subject).name if colon else simulator


def _registered(answer: Mapping[str, Any]) -> list[Compiler]:
    brought = {
        entry.name: f"{entry.dist.name} {entry.dist.version}"
        for entry in in_group(GROUP)
        if entry.dist is not None
    }
    return [
        Compiler(name=name, tags=tuple(tags), source=brought.get(name, module))
        for name, tags, module in answer.get("registered", [])
    ]


def _why(answer: Mapping[str, Any]) -> str:
    choice, simulated = answer.get("choice"), answer.get("simulated")
    if choice is None:
        return ""
    if answer.get("device_type") is None:
        return "PyTorch's default; no accelerator was activated"
    return _reason(answer, choice) + ("; simulated, no hardware is used" if simulated else "")


def _reason(answer: Mapping[str, Any], choice: str) -> str:
    if choice == INDUCTOR:
        return f"inductor makes code for {answer['device_type']}"
    if choice == WITHOUT_CODE:
        return "nothing makes code here; graphs are traced and run operator by operator"
    return f"registered with Dynamo for {answer['device_type']}"


def _compiler() -> Finding:
    found = cpp_compiler()
    if found is None:
        text = "no C++ compiler: inductor makes no code for the CPU"
        fix = "Install g++ or clang++, or name one in CXX."
        return Finding(id="c++", level=Level.WARN, message=text, fix=fix)
    return Finding(id="c++", level=Level.OK, message=found)
