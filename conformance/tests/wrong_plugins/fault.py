"""Faults: each is one thing that a plugin does wrong, and the check that must find it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that a plugin does wrong."""

    name: str
    does: str
    """What it does wrong, in one sentence."""
    kind: str
    """Where the plugin is wrong: ``device``, ``runtime``, ``records`` or ``package``."""
    caught_by: tuple[str, ...]
    """Ids of the checks that must fail: one, or those that state the same fact."""
    apply: Callable[..., Any]


FAULTS: dict[str, Fault] = {}
"""Every fault by name."""


def _register(kind: str) -> Callable[..., Callable[[Callable[..., Any]], Callable[..., Any]]]:
    def named(*caught_by: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            name = function.__name__
            assert name not in FAULTS
            assert caught_by
            FAULTS[name] = Fault(
                name=name,
                does=" ".join((function.__doc__ or "").split()),
                kind=kind,
                caught_by=caught_by,
                apply=function,
            )
            return function

        return register

    return named


on_device = _register("device")
"""The function gets the device module, once per process, before anything uses it."""
in_runtime = _register("runtime")
"""The function gets the plugin's `DeviceRuntime`, at each activation."""
in_records = _register("records")
"""The function gets the plugin's hooks by name, and replaces some."""
in_package = _register("package")
"""The function returns what differs in the distribution: see `installing.install`."""
