"""CUDA names that core alone would refuse or accept without effect, and that the adapter has.

The plugin's mappings say which. Examples are captured graphs, memory pools, the card's temperature
and the limit on a process's memory. A simulated adapter has the
names with nothing behind them, so there they stay as they are.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from typing import TYPE_CHECKING, Any

from cuda_morph import api_table
from cuda_morph.errors import RefusedError
from cuda_morph.plugins import collect
from cuda_morph.records import Treatment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cuda_morph.api_table import ApiRow
    from cuda_morph.device.layer import LayerContext


_OPEN = (Treatment.REFUSE, Treatment.STUB)
"""Treatments that the adapter's own name improves on."""


def find(context: LayerContext) -> dict[str, Any]:
    """Looks for what the plugin maps such names to, in the loaded adapter.

    Args:
        context: The activation.

    Returns:
        The adapter's objects by CUDA name; names that this version of the adapter lacks are not
        there.
    """
    if context.backend.simulated:
        return {}
    rows = api_table.by_name()
    found = {}
    for _, mapping in collect(
        "cuda_morph_api_mappings", plugin=context.plugin, torch_version=_torch_version()
    ):
        row = rows.get(mapping.name)
        if row is None or row.treatment not in _OPEN:
            continue
        if mapping.treatment is Treatment.REDIRECT and mapping.target:
            target = _resolve(mapping.target)
            if callable(target):
                found[mapping.name] = target
    return found


def take_over(context: LayerContext, name: str, old: Any, new: Any) -> None:
    """Lets an object of the adapter answer under a CUDA name.

    Args:
        context: The activation.
        name: The CUDA name.
        old: PyTorch's own function or class.
        new: The adapter's.
    """
    if not isinstance(old, type):
        answer = context.count_calls(name, _adapted(name, old, new))
        context.journal.redirect_function(old, answer)
        return
    # Code that imported the class before activation keeps PyTorch's own, which says what it lacks.
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("torch.cuda") and module is not None:
            same = {key: new for key, value in vars(module).items() if value is old}
            if same:
                context.journal.update_mapping(vars(module), same)


def rows(taken: Mapping[str, Any], objects: Mapping[str, Any]) -> tuple[ApiRow, ...]:
    """Returns the table with the rows of what was taken over.

    Args:
        taken: What `find` returned.
        objects: PyTorch's own objects by CUDA name, to find the further names of an object.

    Returns:
        All rows.
    """
    if not taken:
        return api_table.load()
    identities = {id(objects[name]): name for name in taken if name in objects}
    result = []
    for row in api_table.load():
        name = identities.get(id(objects.get(row.name)), "")
        if row.treatment in _OPEN and name:
            note = f"{taken[name].__module__} answers with {taken[name].__qualname__}."
            row = row._replace(treatment=Treatment.REDIRECT, note=note, replacement="")  # noqa: PLW2901
        result.append(row)
    return tuple(result)


def _torch_version() -> str | None:
    loaded = sys.modules.get("torch")
    return None if loaded is None else str(loaded.__version__)


def _resolve(name: str) -> Any:
    root, _, path = name.partition(".")
    try:
        return functools.reduce(getattr, path.split(".") if path else [], _root(root))
    except (AttributeError, ImportError):
        return None


def _root(name: str) -> Any:
    return importlib.import_module(name)


def _adapted(name: str, old: Any, new: Any) -> Callable[..., Any]:
    """Returns a function for CUDA's positional arguments, less those the adapter does not take."""
    room = _room(new)
    if room is None:
        return _as_it_is(new)
    defaults = [item.default for item in inspect.signature(old).parameters.values()]

    def call(*args: Any) -> Any:
        for value, default in zip(args[room:], defaults[room:], strict=False):
            if value is not default and value != default:
                raise RefusedError(
                    f"{name} takes no more than {room} argument(s) on this accelerator.",
                    hint=f"Call it without {value!r}.",
                )
        return new(*args[:room])

    return call


def _as_it_is(new: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return new(*args)

    return call


def _room(function: Any) -> int | None:
    """Returns how many positional arguments a function takes; ``None``: any number, or unknown."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    kinds = [item.kind for item in parameters]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return None
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(kind in by_place for kind in kinds)
