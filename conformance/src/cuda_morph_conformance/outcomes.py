"""From what was seen of a check to what it counts as: claims, waivers and levels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_morph.records import Support
from cuda_morph_conformance.vocabulary import Level, Outcome, Seen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

STRENGTH = (
    Support.FULL,
    Support.PARTIAL,
    Support.EMULATED,
    Support.UNKNOWN,
    Support.NOT_YET,
    Support.NEVER,
)
"""Claims from the strongest to the weakest."""

DECLINED = frozenset({Support.NOT_YET, Support.NEVER})
"""Claims that say no."""

_MANDATORY: dict[Level, str] = {
    Level.LOADS: "load.install load.discovery load.isolation load.detection load.static_claims "
    "load.activation load.reversible",
    Level.RUNS: "load.inheritance device.string device.index device.count device.current "
    "device.context device.synchronize device.name device.tensor_methods device.module_methods "
    "memory.allocated stream.create stream.current stream.context stream.synchronize "
    "event.record event.synchronize rng.seed dtype.float32 dtype.int64 dtype.bool "
    "io.save io.load io.map_location error.out_of_memory error.bad_index",
    Level.TRAINS: "autograd.backward autograd.custom_function autograd.optimizers autograd.parity "
    "amp.autocast amp.legacy rng.state",
    Level.SCALES: "device.multiple dist.init dist.nccl_name dist.broadcast dist.all_reduce "
    "dist.all_gather dist.reduce_scatter dist.barrier dist.ddp dist.launch",
    Level.ACCELERATES: "attn.sdpa attn.fused attn.causal compile.dynamo",
}

MANDATORY: Mapping[Level, frozenset[str]] = {
    level: frozenset(text.split()) for level, text in _MANDATORY.items()
}
"""Abilities that a plugin of the level has: it cannot decline them and reach the level."""

_EVERY_MANDATORY = frozenset[str]().union(*MANDATORY.values())

_HOLDS = frozenset({Outcome.PASSED, Outcome.UNDERDECLARED, Outcome.WAIVED})


def weakest(claims: Mapping[str, Support], requires: Iterable[str]) -> Support:
    """Tell what the plugin says about everything that a check needs.

    Args:
        claims: Support by capability id.
        requires: The capability ids of the check.

    Returns:
        The weakest of the claims, unknown for an id without one. A check that requires nothing
        concerns every plugin, which is as if it were fully claimed.
    """
    said = [claims.get(name, Support.UNKNOWN) for name in requires]
    return max(said, key=STRENGTH.index, default=Support.FULL)


def judge(seen: Seen, claim: Support, *, waived: bool = False) -> Outcome:
    """Decide what a check counts as.

    A check that could not be made here counts like one that failed where the plugin declines the
    ability, or a waiver names the check; elsewhere it is missing.

    Args:
        seen: What happened.
        claim: The weakest claim about what the check requires.
        waived: Whether a valid waiver names the check.

    Returns:
        The outcome.
    """
    if seen is Seen.ABSENT:
        return Outcome.MISSING
    if waived:
        return Outcome.WAIVED
    if seen is Seen.PASSED:
        return Outcome.UNDERDECLARED if claim in DECLINED else Outcome.PASSED
    if claim in DECLINED:
        return Outcome.UNSUPPORTED
    return Outcome.FAILED if seen is Seen.FAILED else Outcome.MISSING


def is_mandatory(requires: Iterable[str]) -> bool:
    """Tell whether a plugin must pass a check to reach the check's level.

    Args:
        requires: The capability ids of the check.

    Returns:
        True when it requires nothing but abilities that plugins cannot decline.
    """
    return set(requires) <= _EVERY_MANDATORY


def holds(outcome: Outcome, *, mandatory: bool) -> bool:
    """Tell whether an outcome lets the plugin reach the level of the check.

    Args:
        outcome: What the check counted as.
        mandatory: Whether the check is one that cannot be declined.

    Returns:
        False when it keeps the plugin from the level.
    """
    return outcome in _HOLDS or (outcome is Outcome.UNSUPPORTED and not mandatory)


def reached(standing: Iterable[tuple[Level, bool]]) -> Level | None:
    """Find the highest level whose checks all hold, with those of all levels below.

    Args:
        standing: For each result the level of its check, and whether it holds.

    Returns:
        The level, or ``None`` when not even the first was reached.
    """
    rows = list(standing)
    found = None
    for level in Level:
        own = [held for of, held in rows if of is level]
        if not own or not all(own):
            break
        found = level
    return found
