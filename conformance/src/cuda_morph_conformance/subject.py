"""The plugin under examination, as its checks see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import Distribution, EntryPoint, entry_points
from typing import Any

import pluggy

from cuda_morph import hook_table, hookspecs
from cuda_morph.records import Backend, Detection
from cuda_morph_conformance.registry import CheckFailed, NotRun

_ARGUMENTS: dict[str, object] = {"torch_version": None}


@dataclass
class Subject:
    """One plugin, reached in the way core reaches it but without core's safety net.

    Whatever the plugin raises becomes a `CheckFailed` that names the hook it came from.

    Args:
        name: Entry-point name of the plugin.
    """

    name: str
    _answers: dict[str, Any] = field(default_factory=dict)

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

    def need_device(self) -> None:
        """Stop the check as not run where the backend cannot be used.

        Raises:
            NotRun: Torch is missing, or the plugin detects no device here.
        """
        try:
            import torch  # noqa: F401 - only whether it can be imported matters
        except ImportError as error:
            raise NotRun(f"torch cannot be imported: {error}") from error
        detection = self.detection()
        if not detection.available:
            raise NotRun(f"the backend cannot be used here: {detection.reason}")
