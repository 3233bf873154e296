"""Functions under the adapter's parameter names, and names that exist without behaviour."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_EMPTY = inspect.Parameter.empty
_KIND = inspect.Parameter.POSITIONAL_OR_KEYWORD


class NotSimulatedError(NotImplementedError):
    """The adapter has this name; the simulated device has no behaviour for it."""


def not_simulated(name: str) -> NotSimulatedError:
    """Make the error of a name without behaviour.

    Args:
        name: The name as programs write it.

    Returns:
        The error, to be raised.
    """
    return NotSimulatedError(
        f"{name} is not simulated: the adapter has it, the simulated device only knows the name."
    )


def absent_function(name: str) -> Callable[..., Any]:
    """Make a function that the adapter has and the simulated device cannot do.

    Args:
        name: Its name as programs write it.

    Returns:
        A function that takes anything and raises `NotSimulatedError`.
    """

    def call(*_args: Any, **_kwargs: Any) -> Any:
        raise not_simulated(name)

    return _named(call, name)


def absent_class(name: str) -> type:
    """Make a class that the adapter has and the simulated device cannot do.

    Args:
        name: Its name as programs write it.

    Returns:
        A class for ``isinstance``; making an instance raises `NotSimulatedError`.
    """

    def refuse(_cls: type, *_args: Any, **_kwargs: Any) -> Any:
        raise not_simulated(name)

    short = name.rpartition(".")[2]
    body = {"__new__": refuse, "__module__": name.rpartition(".")[0], "__doc__": "Not simulated."}
    return type(short, (), body)


class AbsentValue:
    """A constant or object of the adapter that the simulated device cannot give.

    Args:
        name: Its name as programs write it.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<{self._name}: not simulated>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise not_simulated(f"{self._name}.{name}")

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        """Raise: there is nothing to call."""
        raise not_simulated(self._name)


def with_parameters(
    function: Callable[..., Any], parameters: tuple[str, ...] | None, name: str
) -> Callable[..., Any]:
    """Give a function the adapter's parameter names.

    A parameter of the same name is the same parameter; the others follow by their order. What the
    adapter takes beyond that is accepted and has no meaning here.

    Args:
        function: What the simulated device does.
        parameters: The adapter's names in order; ``None`` when they are not known.
        name: The function's name as programs write it.

    Returns:
        The function itself where its names are the adapter's, else one that renames.
    """
    if parameters is None:
        return function
    own = list(inspect.signature(function).parameters.values())
    if tuple(item.name for item in own) == parameters or any("*" in item for item in parameters):
        return function
    meaning = _pairing(own, parameters)
    if any(item.default is _EMPTY and item.name not in meaning.values() for item in own):
        return absent_function(name)
    signature = _signature(own, parameters, meaning)

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs).arguments
        return function(**{meaning[key]: bound[key] for key in bound if key in meaning})

    call.__doc__ = function.__doc__
    _named(call, name).__dict__["__signature__"] = signature
    return call


def _pairing(own: list[inspect.Parameter], parameters: tuple[str, ...]) -> dict[str, str]:
    """Pair each of the adapter's names with the parameter it stands for."""
    known = {item.name for item in own}
    rest = [item.name for item in own if item.name not in parameters]
    pairs = {name: name for name in parameters if name in known}
    others = (name for name in parameters if name not in known)
    pairs.update(zip(others, rest, strict=False))
    return pairs


def _signature(
    own: list[inspect.Parameter], parameters: tuple[str, ...], meaning: dict[str, str]
) -> inspect.Signature:
    defaults = {item.name: item.default for item in own}
    made: list[inspect.Parameter] = []
    for name in parameters:
        default = defaults.get(meaning.get(name, ""))
        if default is _EMPTY and made and made[-1].default is not _EMPTY:
            default = None
        made.append(inspect.Parameter(name, _KIND, default=default))
    return inspect.Signature(made)


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    module, _, short = name.rpartition(".")
    function.__module__ = module
    function.__name__ = function.__qualname__ = short
    return function
