"""Activation: everything at once, or nothing."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from cuda_morph import environment
from cuda_morph.errors import (
    ActivationError,
    AlreadyActiveError,
    MorphError,
    TorchMissingError,
)
from cuda_morph.inheritance import encode
from cuda_morph.manifest import OFF, PASSTHROUGH, Activation
from cuda_morph.patching import Journal
from cuda_morph.plugins import device_mapping
from cuda_morph.selection import Selection, select_backend
from cuda_morph.views import NATIVE, VIEWS, ViewPolicy

if TYPE_CHECKING:
    from cuda_morph.device.answers import Answer
    from cuda_morph.device.layer import LayerContext
    from cuda_morph.device.protocol import DeviceRuntime
    from cuda_morph.interception import Target
    from cuda_morph.records import DeviceMapping
    from cuda_morph.trace.recorder import Recorder
    from cuda_morph.usage import UsageCounter

_log = logging.getLogger("cuda_morph")
_lock = threading.RLock()
_active: Activation | None = None
_depth = 0


def activate(
    backend: str | None = None,
    *,
    view: str | None = None,
    fallback: str | None = None,
    strict: bool = False,
    trace: bool | Literal["counts"] = False,
) -> Activation:
    """Makes CUDA code of this process run on another accelerator.

    Nested calls are counted; each needs its own `deactivate`. If anything fails, everything that
    was changed is put back before the error is raised.

    Args:
        backend: Plugin name, e.g. ``"sim"``, or ``"sim:mychip"`` for the plugin ``mychip`` on a
            simulation of its device. ``None``: ``CUDA_MORPH_BACKEND``, else the only
            available accelerator, else the fallback.
        view: ``"native"`` (devices show as the vendor's) or ``"cuda"`` (code sees a CUDA
            machine). ``None``: ``CUDA_MORPH_VIEW``, else native.
        fallback: Without an accelerator, ``"cpu"`` runs on the CPU with a warning and
            ``"error"`` raises. ``None``: ``CUDA_MORPH_FALLBACK``, else cpu.
        strict: Also refuse what would only be partly true: a limit of the tier, or a version of
            PyTorch that this release was not tested on.
        trace: Record which CUDA calls are answered and which kernels operators use, with time and
            call sites; see `Activation.trace`. It slows the program down. ``"counts"`` only counts
            CUDA calls; see `Activation.usage`.

    Returns:
        The manifest; also a context manager that deactivates.

    Raises:
        MorphError: Unknown, ambiguous or unavailable backend, unusable setting, or a failure
            that was rolled back.
    """
    global _active, _depth
    _configure_logging()
    view = environment.choose(view, VIEWS, "view") if view else environment.read(environment.VIEW)
    fallback = fallback or environment.read(environment.FALLBACK) or "cpu"
    backend = backend or environment.read(environment.BACKEND)
    off = environment.read_flag(environment.NO_PATCH)
    if not off:
        # Outside the lock: importing torch may itself activate, through the inherited setting.
        _import_torch()
    with _lock:
        if _active is not None:
            _check_same(_active, backend, view)
            _depth += 1
            return _active
        if off:
            _active = _inert(view or NATIVE)
        else:
            _active = _activate(backend, view or NATIVE, fallback, strict=strict, trace=trace)
        _depth = 1
        for warning in _active.warnings:
            _log.warning("%s", warning)
        return _active


def deactivate() -> None:
    """Takes back what the matching `activate` did; a call too many does nothing."""
    global _active, _depth
    with _lock:
        if _active is None:
            return
        _depth -= 1
        if _depth > 0:
            return
        journal, _active = _active.journal, None
        if journal is not None:
            journal.rollback()
            _reset_dynamo()


def is_active() -> bool:
    """Returns whether CUDA calls of this process are being redirected."""
    return _active is not None and _active.tier not in (PASSTHROUGH, OFF)


def current() -> Activation | None:
    """Returns the manifest in force, or ``None``."""
    return _active


def _check_same(active: Activation, backend: str | None, view: str | None) -> None:
    if backend not in (None, active.requested):
        raise AlreadyActiveError(
            f"Backend {active.requested!r} is active; {backend!r} cannot be added to it.",
            hint="Call cuda_morph.deactivate() first. One process has one active backend.",
        )
    if view not in (None, active.view):
        raise AlreadyActiveError(
            f"The {active.view} view is active; the {view} view cannot be added to it.",
            hint="Call cuda_morph.deactivate() first.",
        )


def _activate(
    requested: str | None,
    view: str,
    fallback: str,
    *,
    strict: bool,
    trace: bool | Literal["counts"],
) -> Activation:
    selection = select_backend(requested, fallback=fallback)
    if selection.passthrough:
        return Activation(
            backend=selection.backend,
            requested=selection.plugin,
            view=view,
            tier=PASSTHROUGH,
            device_count=selection.detection.device_count,
        )
    journal = Journal()
    try:
        activation = _build(selection, view, journal, trace)
        if strict:
            _refuse_limits(activation)
        _leave_to_children(journal, activation, fallback)
        _reset_dynamo()
    except MorphError:
        journal.rollback()
        raise
    except Exception as error:
        journal.rollback()
        raise ActivationError(
            f"Activating backend {selection.backend.name!r} failed and was rolled back: {error}",
            hint="Run with CUDA_MORPH_LOG_LEVEL=DEBUG for the traceback, or use another backend.",
        ) from error
    except BaseException:
        journal.rollback()
        raise
    return activation


def _inert(view: str) -> Activation:
    """Returns the manifest of an activation that the environment switched off."""
    from cuda_morph.builtin import REAL_CUDA

    return Activation(backend=REAL_CUDA, requested=REAL_CUDA.name, view=view, tier=OFF)


def _import_torch() -> None:
    try:
        importlib.import_module("torch")
    except ImportError as error:
        raise TorchMissingError(
            f"PyTorch cannot be imported: {error}.",
            hint="Install the build of PyTorch that your accelerator's vendor asks for.",
        ) from error


def _build(
    selection: Selection, view: str, journal: Journal, trace: bool | Literal["counts"]
) -> Activation:
    from cuda_morph.device import layer
    from cuda_morph.interception.choice import apply_best_tier

    backend = selection.backend
    mapping = _device_mapping(selection)
    runtime = _runtime(selection, mapping, journal)
    policy = ViewPolicy(view, mapping.target, backend.native_libraries)
    target = _target(mapping, policy)
    usage = _usage(mapping, trace)
    context = layer.LayerContext(
        journal=journal,
        runtime=runtime,
        policy=policy,
        backend=backend,
        plugin=selection.plugin,
        count_calls=_uncounted if usage is None else usage.wrap,
    )
    # The layer comes first: creating a tensor for the tier's self-test calls torch.cuda.
    rows = layer.apply(context)
    choice = apply_best_tier(target, journal, environment.read(environment.TIER))
    _connect(context, target, choice.tier.name)
    recorder = _started_recorder(usage, journal, target, choice.tier.name)
    return Activation(
        backend=backend,
        requested=selection.requested,
        view=view,
        tier=choice.tier.name,
        device_count=runtime.device_count(),
        rows=rows,
        limits=choice.tier.limits(target) + _view_limits(target),
        tier_reasons=choice.reasons,
        warnings=tuple(selection.warnings),
        journal=journal,
        usage_counter=usage,
        recorder=recorder,
    )


def _connect(context: LayerContext, target: Target, tier: str) -> None:
    """Connects PyTorch's extension points, and what other libraries look for."""
    from cuda_morph import bridges, ecosystem

    bridges.apply(context, target, tier)
    ecosystem.apply(context, target)


def _device_mapping(selection: Selection) -> DeviceMapping:
    """Returns the plugin's mapping; its adapter is not loaded where the device is simulated."""
    mapping = device_mapping(selection.plugin)
    simulation = selection.simulation
    return mapping if simulation is None else replace(mapping, init=simulation.load)


def _uncounted(_name: str, answer: Answer) -> Answer:
    return answer


def _started_recorder(
    usage: UsageCounter | Recorder | None, journal: Journal, target: Target, tier: str
) -> Recorder | None:
    if usage is None:
        return None
    from cuda_morph.usage import UsageCounter

    if isinstance(usage, UsageCounter):
        usage.watch_spellings(journal, target, tier)
        return None
    from cuda_morph.trace import installation

    installation.start(journal, usage, target, tier)
    return usage


def _usage(
    mapping: DeviceMapping, trace: bool | Literal["counts"]
) -> UsageCounter | Recorder | None:
    """Returns what notes calls; ``None`` where nothing is to be noted, so that nothing is paid."""
    if not trace:
        return None
    if trace != "counts":
        from cuda_morph.trace.installation import new_recorder

        adapter = mapping.module or getattr(mapping.init, "__module__", None)
        return new_recorder(str(adapter or ""))
    from cuda_morph.usage import UsageCounter

    return UsageCounter()


def _runtime(selection: Selection, mapping: DeviceMapping, journal: Journal) -> DeviceRuntime:
    """Loads the adapter and returns the plugin's device runtime, or the generic one."""
    if selection.backend.env_defaults or environment.has_names_of_cuda():
        from cuda_morph.bridges import environment_map

        environment_map.apply(journal, selection.backend, selection.plugin)
    simulation = selection.simulation
    if simulation is not None and simulation.unload is not None:
        journal.on_rollback(simulation.unload)
    loaded = mapping.init() if mapping.init is not None else None
    simulated = None if simulation is None else loaded
    if selection.backend.adapter_module is not None or simulated is not None:
        from cuda_morph import adapter

        journal.on_rollback(adapter.provide(selection.backend.adapter_module, simulated))
    if mapping.runtime is not None:
        return mapping.runtime()
    from cuda_morph.device.accelerator import AcceleratorRuntime

    name = mapping.module or f"torch.{mapping.target}"
    root, _, path = name.partition(".")
    module: Any = importlib.import_module(root)
    for part in path.split(".") if path else ():
        module = getattr(module, part)
    backend = selection.backend
    called = f"{backend.display_name} (simulated)" if backend.simulated else backend.display_name
    return AcceleratorRuntime(mapping.target, module, mapping.compute_capability, called)


def _target(mapping: DeviceMapping, policy: ViewPolicy) -> Target:
    import torch

    from cuda_morph.interception import Target
    from cuda_morph.torch_facts import DEVICE_TYPE_IDS, PRIVATE_USE_ONE

    type_id = DEVICE_TYPE_IDS.get(mapping.target, PRIVATE_USE_ONE)
    return Target(
        device_type=mapping.target,
        type_id=type_id,
        device=torch.device(mapping.target),
        policy=policy,
    )


def _view_limits(target: Target) -> tuple[str, ...]:
    limits: tuple[str, ...] = ()
    if target.device_type == "cpu":
        limits = (
            "Autocast without a dtype computes in bfloat16 on the CPU, float16 on CUDA.",
            "Functions such as torch.empty refuse pin_memory=True; Tensor.pin_memory() works.",
        )
    if target.policy.view == NATIVE or target.masked:
        return limits
    return (
        *limits,
        (
            f"Devices of type {target.device_type!r} keep their name in the cuda view: "
            f"device.type is {target.device_type!r}, while torch.cuda and is_cuda answer as CUDA."
        ),
    )


def _refuse_limits(activation: Activation) -> None:
    from cuda_morph.torch_facts import TESTED_TORCH, is_tested, torch_version

    problems = list(activation.limits)
    version = torch_version() or "unknown"
    if not is_tested(version):
        problems.append(f"PyTorch {version} is not among the tested {', '.join(TESTED_TORCH)}.")
    if problems:
        raise ActivationError(
            "Strict activation refused: " + " ".join(problems), hint="Activate without strict."
        )


def _leave_to_children(journal: Journal, activation: Activation, fallback: str) -> None:
    """Lets child processes inherit the activation through the environment."""
    value = encode(
        backend=activation.requested,
        view=activation.view,
        fallback=fallback,
        tier=environment.read(environment.TIER),
    )
    # Not put back to what a parent or `cuda-morph run` had set: who deactivates has no heirs.
    journal.on_rollback(lambda: os.environ.pop(environment.INHERIT.name, None))
    os.environ[environment.INHERIT.name] = value


def _reset_dynamo() -> None:
    """Drops compiled code: it has answers of the other state folded in, without guards."""
    dynamo = sys.modules.get("torch._dynamo")
    reset = getattr(dynamo, "reset", None)
    if reset is not None:
        reset()


def _configure_logging() -> None:
    """Shows the logger's records on standard error, once, at the level the user asked for."""
    if _log.handlers or (_log.hasHandlers() and logging.getLogger().handlers):
        level = environment.read(environment.LOG_LEVEL)
        if level:
            _log.setLevel(level)
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("cuda-morph: %(message)s"))
    _log.addHandler(handler)
    _log.setLevel(environment.read(environment.LOG_LEVEL) or "WARNING")
    _log.propagate = False


def _import_torch_parts() -> None:
    """Imports what every activation needs from core, if torch is there already.

    Otherwise the first `activate` does it. Time counts more there than at an import: it may be
    called in a worker that has started, or in a test.
    """
    torch = sys.modules.get("torch")
    if torch is None or getattr(torch.__spec__, "_initializing", True):
        return  # never from within `import torch`, which may import this module at its end
    for name in (
        "device.layer",
        "interception.choice",
        "interception",
        "bridges",
        "ecosystem",
    ):
        importlib.import_module(f"cuda_morph.{name}")


with contextlib.suppress(Exception):  # a torch that is broken is the business of activate()
    _import_torch_parts()
