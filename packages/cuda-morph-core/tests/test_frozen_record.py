import copy
import dataclasses
import inspect
import pickle

import pytest

from cuda_morph.frozen_record import frozen_record


@frozen_record
class Place:
    """A record for these tests."""

    x: int
    y: int = 0
    names: tuple[str, ...] = ()
    extra: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The same with the standard library's decorator."""

    x: int
    y: int = 0
    names: tuple[str, ...] = ()
    extra: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Derived(Place):
    """What a plugin may do with one of core's records."""

    z: int = 3


@pytest.mark.parametrize("values", [{"x": 1}, {"x": 1, "y": 2, "names": ("a",), "extra": [5]}])
def test_acts_as_a_frozen_dataclass(values):
    ours, theirs = Place(**values), Reference(**values)
    assert repr(ours) == repr(theirs).replace("Reference", "Place")
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert dataclasses.replace(ours, x=9) == Place(**{**values, "x": 9})
    assert ours == Place(**values)
    assert ours != theirs
    assert not hasattr(ours, "__dict__")
    assert pickle.loads(pickle.dumps(ours)) == ours
    assert copy.deepcopy(ours) == ours
    assert str(inspect.signature(Place)).replace("Ellipsis", "<factory>") == str(
        inspect.signature(Reference)
    ).replace(" -> None", "")


@pytest.mark.parametrize("values", [{}, {"x": 1, "nonsense": 2}, {"y": 2}])
def test_refuses_the_same_arguments_with_the_same_words(values):
    with pytest.raises(TypeError) as theirs:
        Reference(**values)
    with pytest.raises(TypeError) as ours:
        Place(**values)
    assert str(ours.value) == str(theirs.value).replace("Reference", "Place")


def test_takes_nothing_by_position():
    with pytest.raises(TypeError, match="positional"):
        Place(1)


def test_fields_cannot_be_changed():
    place = Place(x=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        place.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        place.other = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del place.x


def test_hash_follows_equality():
    @frozen_record
    class Key:
        """Hashable fields only."""

        a: str
        b: int = 0

    assert len({Key(a="x"), Key(a="x"), Key(a="y")}) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(Place(x=1))


def test_each_instance_has_its_own_default():
    assert Place(x=1).extra is not Place(x=1).extra


def test_a_frozen_dataclass_may_derive():
    derived = Derived(x=1)
    assert (derived.x, derived.z) == (1, 3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        derived.z = 4
