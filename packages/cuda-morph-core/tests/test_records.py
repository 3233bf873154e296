import dataclasses
import enum
import inspect
import typing
from collections.abc import Callable, Mapping

import pytest

from cuda_morph import records

RECORDS = [
    value
    for value in vars(records).values()
    if inspect.isclass(value)
    and value.__module__ == records.__name__
    and not issubclass(value, enum.Enum)
]
STDLIB = (str, int, bool, float, type(None), object, typing.Any, Ellipsis)


def atoms(hint: object) -> list[object]:
    """The types a hint is made of; arguments of a callable are in a list."""
    if isinstance(hint, list):
        return [atom for item in hint for atom in atoms(item)]
    arguments = typing.get_args(hint)
    if not arguments:
        return [hint]
    own = typing.get_origin(hint)
    rest = [atom for item in arguments for atom in atoms(item)]
    return (
        rest if own in (typing.Union, tuple, Mapping, Callable) or is_union(own) else [own, *rest]
    )


def is_union(origin: object) -> bool:
    return getattr(origin, "__name__", "") == "UnionType"


def sample(hint: object) -> object:
    """A value of the type, to build a record with."""
    origin = typing.get_origin(hint)
    if origin is typing.Union or is_union(origin):
        return sample(typing.get_args(hint)[0])
    if origin is Callable:
        return print
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return next(iter(hint))
    if dataclasses.is_dataclass(hint):
        return build(hint)
    return {str: "x", bool: True, int: 1}[hint]


def hints(record: type) -> dict[str, object]:
    return typing.get_type_hints(record, vars(records), {"DeviceRuntime": object})


def build(record: type, **values: object) -> object:
    required = {
        field.name: sample(hints(record)[field.name])
        for field in dataclasses.fields(record)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }
    return record(**{**required, **values})


def test_there_are_records() -> None:
    assert records.Backend in RECORDS
    assert records.Support not in RECORDS


@pytest.mark.parametrize("record", RECORDS)
def test_is_a_frozen_record(record: type) -> None:
    instance = build(record)
    field = dataclasses.fields(record)[0]

    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(instance, field.name, "other")


@pytest.mark.parametrize("record", RECORDS)
def test_has_slots(record: type) -> None:
    assert not hasattr(build(record), "__dict__")


@pytest.mark.parametrize("record", RECORDS)
def test_takes_keywords_only(record: type) -> None:
    parameters = inspect.signature(record).parameters.values()
    assert {parameter.kind for parameter in parameters} == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("record", RECORDS)
def test_has_fields_of_the_standard_library_only(record: type) -> None:
    for name, hint in hints(record).items():
        for atom in atoms(hint):
            assert atom in STDLIB or atom.__module__ == records.__name__, (name, atom)


@pytest.mark.parametrize("record", RECORDS)
def test_is_documented(record: type) -> None:
    assert record.__doc__
    assert not record.__doc__.startswith(f"{record.__name__}(")


def test_default_spec_is_the_first_version_not_core_s_own() -> None:
    field = next(item for item in dataclasses.fields(records.Backend) if item.name == "spec")
    assert field.default == "1.0"
