"""The plugin under examination, as its checks see it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import Distribution, EntryPoint, entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pluggy

from cuda_morph import hook_table, hookspecs
from cuda_morph.capabilities import CAPABILITIES
from cuda_morph.records import Backend, CapabilityClaim, Detection, Support
from cuda_morph_conformance.registry import CheckFailed, NotRun
from cuda_morph_conformance.starting import run_program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from subprocess import CompletedProcess

    from cuda_morph import Activation

SIMULATOR = "sim"
"""The plugin that can take the personality of another one."""

_SHARE = 0.9
"""Part of a check's time that a program may take."""

_ARGUMENTS: dict[str, object] = {"torch_version": None}


@dataclass
class Subject:
    """One plugin, reached in the way core reaches it but without core's safety net.

    Whatever the plugin raises becomes a `CheckFailed` that names the hook it came from.

    Args:
        name: Entry-point name of the plugin.
        view: The view that the check is about, ``"native"`` or ``"cuda"``.
        limit: Seconds that a check may take; programs are ended a little earlier.
    """

    name: str
    view: str = "native"
    limit: float = 120.0
    _answers: dict[str, Any] = field(default_factory=dict)
    _environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    """As it was before anything was activated."""

    @cached_property
    def entries(self) -> tuple[EntryPoint, ...]:
        """All entry points that carry the name; exactly one is right."""
        return tuple(entry_points(group=hookspecs.ENTRY_POINT_GROUP, name=self.name))

    @cached_property
    def entry(self) -> EntryPoint:
        """The first entry point that carries the name."""
        if not self.entries:
            raise CheckFailed(f"no entry point {self.name!r} in {hookspecs.ENTRY_POINT_GROUP}")
        return self.entries[0]

    @cached_property
    def distribution(self) -> Distribution:
        """The distribution that brings the plugin."""
        distribution = self.entry.dist
        if distribution is None:
            raise CheckFailed("the entry point belongs to no installed distribution")
        return distribution

    @cached_property
    def plugin(self) -> Any:
        """The loaded plugin, usually a module."""
        try:
            return self.entry.load()
        except BaseException as error:
            raise CheckFailed(f"importing {self.entry.value} raised {error!r}") from error

    @cached_property
    def manager(self) -> pluggy.PluginManager:
        """A manager that knows core's hooks and this plugin only."""
        manager = pluggy.PluginManager(hookspecs.PROJECT)
        manager.add_hookspecs(hookspecs)
        try:
            manager.register(self.plugin, self.name)
        except (pluggy.PluginValidationError, ValueError) as error:
            raise CheckFailed(f"core's hooks do not accept the plugin: {error}") from error
        return manager

    def implements(self, hook: str) -> bool:
        """Returns whether the plugin implements the hook."""
        return bool(getattr(self.manager.hook, hook).get_hookimpls())

    def call(self, hook: str) -> Any:
        """Call the plugin's implementation of a hook, once per process.

        Args:
            hook: Name of a hook of `cuda_morph.hookspecs`.

        Returns:
            Its answer; an iterable is already turned into a tuple.

        Raises:
            CheckFailed: The hook is not implemented, raised, or took an unknown argument.
        """
        if hook not in self._answers:
            self._answers[hook] = self._call(hook)
        return self._answers[hook]

    def _call(self, hook: str) -> Any:
        implementations = getattr(self.manager.hook, hook).get_hookimpls()
        if not implementations:
            raise CheckFailed(f"{hook} is not implemented")
        [implementation] = implementations
        arguments = [_ARGUMENTS[name] for name in implementation.argnames]
        try:
            answer = implementation.function(*arguments)
            many = hook_table.HOOKS[hook].many and answer is not None
            return tuple(answer) if many else answer
        except BaseException as error:
            raise CheckFailed(f"{hook} raised {error!r}") from error

    def backend(self) -> Backend:
        """Returns the plugin's `Backend` record.

        Raises:
            CheckFailed: The hook answered with something else.
        """
        backend = self.call("cuda_morph_backend")
        if not isinstance(backend, Backend):
            raise CheckFailed(f"cuda_morph_backend returned {backend!r}, not a Backend")
        return backend

    def detection(self) -> Detection:
        """Returns the plugin's `Detection` record.

        Raises:
            CheckFailed: The hook answered with something else.
        """
        detection = self.call("cuda_morph_detect")
        if not isinstance(detection, Detection):
            raise CheckFailed(f"cuda_morph_detect returned {detection!r}, not a Detection")
        return detection

    @cached_property
    def backend_name(self) -> str:
        """What to activate: the plugin, or ``sim:<plugin>`` where only a simulation is possible."""
        if not self.detection().available and self._personality() is not None:
            return f"{SIMULATOR}:{self.name}"
        return self.name

    @property
    def simulated(self) -> bool:
        """True when no accelerator stands behind the results."""
        return self.backend_name != self.name or self.backend().simulated

    @cached_property
    def claims(self) -> Mapping[str, Support]:
        """What the plugin says of each capability id; unknown where it says nothing."""
        hook = "cuda_morph_capabilities"
        answers = self.call(hook) if self.implements(hook) else ()
        made = {claim.id: claim.support for claim in answers if isinstance(claim, CapabilityClaim)}
        return {name: made.get(name, Support.UNKNOWN) for name in CAPABILITIES}

    @property
    def device_type(self) -> str:
        """The plugin's own name for its devices, such as ``npu``."""
        return self.backend().device_type

    @cached_property
    def device_count(self) -> int:
        """How many devices there are, or are simulated."""
        if self.backend_name == self.name:
            return self.detection().device_count
        from cuda_morph.plugins import get_plugin

        found = get_plugin(SIMULATOR, detect=True).detection
        return found.device_count if found else 0

    @property
    def environment(self) -> dict[str, str]:
        """The environment of this process as it was before anything was activated."""
        return dict(self._environment)

    def activate(self, **options: Any) -> Activation:
        """Activate the plugin, or its simulation, in the view of this subject.

        Args:
            **options: Arguments of `cuda_morph.activate`.

        Returns:
            The manifest, a context manager that deactivates.
        """
        import cuda_morph

        return cuda_morph.activate(self.backend_name, **{"view": self.view, **options})

    def run_program(
        self,
        source: str | Path,
        *,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        timeout: float = 60,
        ranks: int = 0,
        options: Sequence[str] = (),
        shim: bool = True,
    ) -> CompletedProcess[str]:
        """Run a Python program under ``cuda-morph run`` in a process and folder of its own.

        Args:
            source: The program's text, or the path of its file.
            args: Its arguments.
            env: Environment variables to set on top of a clean environment.
            timeout: Seconds after which it is stopped.
            ranks: Start that many ranks with torchrun; 0 starts one plain process.
            options: Further options of ``cuda-morph run``.
            shim: False runs it with plain Python.

        Returns:
            The ended process with its output and exit code, which the caller judges.

        Raises:
            CheckFailed: It did not end in time.
        """
        run = ["cuda_morph", "run", "--quiet", "--backend", self.backend_name, "--view", self.view]
        return run_program(
            source,
            launcher=["-m", *run, *options] if shim else [],
            arguments=args,
            environment={**self._environment, **(env or {})},
            # Before the worker is ended, which would leave the program running.
            timeout=min(timeout, self.limit * _SHARE),
            ranks=ranks,
        )

    @property
    def absence(self) -> str:
        """Why neither the backend nor a simulation of it can be used here; empty when one can."""
        if find_spec("torch") is None:
            return "torch is not installed"
        detection = self.detection()
        if not detection.available and self.backend_name == self.name:
            return f"the backend cannot be used here: {detection.reason}"
        return ""

    def need_device(self) -> None:
        """Stop the check as not run where neither the backend nor its simulation can be used.

        Raises:
            NotRun: Torch is missing, or the plugin detects no device here.
        """
        if self.absence:
            raise NotRun(self.absence)

    def _personality(self) -> object:
        """What a simulation of the plugin goes by, if it has one and a simulator is installed."""
        hook = "cuda_morph_personality"
        if self.name == SIMULATOR or not self.implements(hook):
            return None
        if not entry_points(group=hookspecs.ENTRY_POINT_GROUP, name=SIMULATOR):
            return None
        return self.call(hook)
