"""Chooses the tier: the first that can be used, proves itself, and can give the view."""

from __future__ import annotations

from dataclasses import dataclass

from cuda_morph.errors import TierError
from cuda_morph.interception.native_tier import NativeTier
from cuda_morph.interception.self_test import prove
from cuda_morph.interception.table_tier import TableTier
from cuda_morph.interception.tier import Target, Tier
from cuda_morph.interception.wrapper_tier import WrapperTier
from cuda_morph.patching import Journal

TIERS: tuple[Tier, ...] = (NativeTier(), TableTier(), WrapperTier())
"""Fastest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The tier in force and why faster ones are not."""

    tier: Tier
    reasons: dict[str, str]


def apply_best_tier(target: Target, journal: Journal, forced: str | None = None) -> Choice:
    """Applies the first tier that works; every change is in `journal`.

    Args:
        target: The device and view to intercept for.
        journal: Receives the changes of the tier that stays.
        forced: Name of the only tier to try.

    Raises:
        TierError: No tier works, or the forced one does not.
    """
    reasons: dict[str, str] = {}
    for tier in TIERS:
        if forced is not None and tier.name != forced:
            continue
        obstacle = tier.obstacle(target)
        if not obstacle:
            attempt = Journal()
            try:
                tier.apply(target, attempt)
                prove(target, tier.name)
            except TierError as error:
                attempt.rollback()
                obstacle = error.message
            except BaseException:
                attempt.rollback()
                raise
            else:
                journal.on_rollback(attempt.rollback)
                return Choice(tier=tier, reasons=reasons)
        reasons[tier.name] = obstacle
    listing = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    which = f"Tier {forced} (forced)" if forced else "No interception tier"
    raise TierError(
        f"{which} cannot be used in this process. {listing}",
        hint="Unset CUDA_MORPH_TIER, or install cuda-morph-native for this interpreter.",
    )
