"""Tier T3: Python wrappers (placeholder until written)."""

from __future__ import annotations

from cuda_morph.interception.tier import Target
from cuda_morph.patching import Journal


class WrapperTier:
    name = "T3"

    def obstacle(self, target: Target) -> str:
        return "not written"

    def apply(self, target: Target, journal: Journal) -> None:
        raise NotImplementedError

    def limits(self, target: Target) -> tuple[str, ...]:
        return ()
