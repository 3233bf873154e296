import dataclasses
import re

import pytest

from cuda_morph.capabilities import CAPABILITIES, FAMILIES, is_capability


def test_every_family_of_the_specification_has_capabilities() -> None:
    families = "load device memory stream event rng dtype autograd amp io error dist attn compile graph ext"
    assert list(FAMILIES) == families.split()
    assert {capability.family for capability in CAPABILITIES.values()} == set(FAMILIES)


@pytest.mark.parametrize("name", CAPABILITIES)
def test_id_and_summary(name: str) -> None:
    capability = CAPABILITIES[name]
    assert capability.id == name
    assert re.fullmatch(r"[a-z]+\.[a-z][a-z0-9_]*", name)
    assert re.fullmatch(r"[^.].*[^.]\.", capability.summary)
    assert capability.summary.count(". ") == 0, "one sentence"
    assert capability.since == "1.0"


def test_summaries_are_distinct() -> None:
    summaries = [capability.summary for capability in CAPABILITIES.values()]
    assert len(set(summaries)) == len(summaries)


def test_is_capability() -> None:
    assert is_capability("stream.priority")
    assert not is_capability("stream")
    assert not is_capability("stream.priorities")
    assert not is_capability("")


def test_the_list_is_closed() -> None:
    with pytest.raises(TypeError):
        CAPABILITIES["stream.new"] = CAPABILITIES["stream.create"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        CAPABILITIES["stream.create"].id = "other"
