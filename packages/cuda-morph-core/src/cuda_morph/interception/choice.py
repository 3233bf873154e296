"""Chooses the tier: the first that can be used, proves itself, and can give the view."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph.errors import TierError, ViewError
from cuda_morph.frozen_record import frozen_record
from cuda_morph.patching import Journal

if TYPE_CHECKING:
    from cuda_morph.interception import Target, Tier

TIERS = {
    "T0": "cuda_morph.interception.native_tier:NativeTier",
    "T1": "cuda_morph.interception.table_tier:TableTier",
    "T3": "cuda_morph.interception.wrapper_tier:WrapperTier",
}
"""Fastest first; each is imported only when it is tried."""


@frozen_record
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
        ViewError: A tier could be used, in the other view only.
    """
    reasons: dict[str, str] = {}
    for name, home in TIERS.items():
        if forced is not None and name != forced:
            continue
        module, _, class_name = home.partition(":")
        tier: Tier = getattr(import_module(module), class_name)()
        obstacle = tier.obstacle(target)
        if not obstacle:
            attempt = Journal()
            try:
                tier.apply(target, attempt)
                _prove(target, tier.name)
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
    if target.masked and "T3" in reasons:
        raise ViewError(
            f"The cuda view is not available in this process. {listing}",
            hint="Use view='native', or install cuda-morph-native for this interpreter.",
        )
    raise TierError(
        f"{which} cannot be used in this process. {listing}",
        hint="Unset CUDA_MORPH_TIER, or install cuda-morph-native for this interpreter.",
    )


def _prove(target: Target, tier_name: str) -> None:
    """The self-test of every activation: checks that device strings arrive where they should.

    Raises:
        TierError: One of the answers is wrong.
    """
    expected = "cuda" if target.masked else target.device_type
    _expect(tier_name, "torch.device('cuda').type", torch.device("cuda").type, expected)
    _expect(tier_name, "torch.device('cpu').type", torch.device("cpu").type, "cpu")
    _expect(tier_name, "torch.device('meta').type", torch.device("meta").type, "meta")
    if target.device_type != "cpu":
        _expect(tier_name, "torch.device('cuda:1').index", torch.device("cuda:1").index, 1)
    created = torch.empty(0, device="cuda").device.type
    _expect(tier_name, "torch.empty(0, device='cuda').device.type", created, expected)
    own = torch.device(target.device_type).type
    _expect(tier_name, f"torch.device({target.device_type!r}).type", own, expected)
    moved = torch.empty(0).cuda()
    _expect(tier_name, "torch.empty(0).cuda().device.type", moved.device.type, expected)
    try:
        torch.device("cuda_morph_nonsense")
    except RuntimeError:
        return
    raise TierError(f"Tier {tier_name}: an unknown device string was accepted.")


def _expect(tier_name: str, what: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise TierError(
            f"Tier {tier_name} failed its self-test: {what} is {found!r}, not {expected!r}."
        )
