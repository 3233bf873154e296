"""The self-test: a tier proves itself at every activation, or the next one is tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph.errors import TierError

if TYPE_CHECKING:
    from cuda_morph.interception.tier import Target


def prove(target: Target, tier_name: str) -> None:
    """Checks that device strings arrive where they should.

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
