"""Models from a user's file: ``MODEL.py:factory``, with inputs from the factory or the command."""

from __future__ import annotations

import difflib
import importlib.machinery
import importlib.util
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuda_morph.errors import LaunchError, MorphError, SettingError
from cuda_morph.frozen_record import frozen_record
from cuda_morph.verification.structures import tensors, to_device

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MODULE = "cuda_morph_model_file"
_SHAPE = re.compile(r"(\d+(?:,\d+)*)(?::([a-z][a-z0-9_]*))?", re.ASCII)
_SEED = 20240229
_LARGEST_INTEGER = 10
_MOST_ELEMENTS = 2**31
_RETURN = "Let the factory return (model, inputs), or give --input SHAPE:DTYPE."


@frozen_record
class ModelCall:
    """A model on a device, with what to call it on."""

    model: Callable[..., Any]
    args: tuple[Any, ...]
    keywords: dict[str, Any]

    def __call__(self) -> Any:
        """Calls the model.

        Raises:
            LaunchError: The model raised; the message says what and where.
        """
        try:
            return self.model(*self.args, **self.keywords)
        except MorphError:
            raise
        except Exception as error:
            raise _failed("The model failed", error) from error

    def backward(self) -> None:
        """Calls the model and differentiates the sum of its results.

        Raises:
            LaunchError: The model raised, or gives nothing that can be differentiated.
        """
        results = [one for one in tensors(plain(self())) if one.requires_grad]
        if not results:
            raise LaunchError(
                "The model gives nothing that can be differentiated.",
                hint="Leave --backward or --train away, or return a tensor that needs a gradient.",
            )
        try:
            sum(one.abs().sum() for one in results).backward()
        except Exception as error:
            raise _failed("The backward pass failed", error) from error


def split_target(target: str) -> tuple[Path, str]:
    """Splits ``MODEL.py:factory``.

    Raises:
        SettingError: It has no two parts.
        LaunchError: There is no such file.
    """
    path, colon, name = target.rpartition(":")
    if not colon or not path or not name.isidentifier():
        raise SettingError(
            f"{target!r} does not name a factory.",
            hint="Write FILE:FUNCTION, for example model.py:make_model.",
        )
    file = Path(path)
    try:
        found = file.is_file()
    except (OSError, ValueError):
        found = False
    if not found:
        raise LaunchError(f"There is no file {path!r}.", hint="Check the path before the colon.")
    return file, name


def load_factory(target: str) -> Callable[[], Any]:
    """Imports the file and finds the factory in it.

    Args:
        target: ``MODEL.py:factory``.

    Returns:
        The factory.

    Raises:
        SettingError: The target is not understood.
        LaunchError: The file is missing or fails, or has no such function.
    """
    file, name = split_target(target)
    spec = importlib.util.spec_from_loader(
        _MODULE, importlib.machinery.SourceFileLoader(_MODULE, str(file)), origin=str(file)
    )
    if spec is None or spec.loader is None:
        raise LaunchError(f"The file {file} cannot be imported.", hint="It must be Python.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # the file may import its neighbours, as when it is run
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _failed(f"The file {file} cannot be imported", error) from error
    factory = getattr(module, name, None)
    if not callable(factory):
        raise LaunchError(f"{file} has no function {name!r}.", hint=_advice(module, name))
    made: Callable[[], Any] = factory
    return made


def _advice(module: Any, name: str) -> str:
    own = [
        key
        for key, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == _MODULE
    ]
    close = difflib.get_close_matches(name, own, n=3) or sorted(own)[:5]
    return f"It has {', '.join(close)}." if close else "It defines no function."


def build(factory: Callable[[], Any], inputs: Sequence[str], device: Any) -> ModelCall:
    """Calls the factory and moves model and inputs to the device.

    Args:
        factory: Returns a model, or a model with its inputs.
        inputs: Of the command line, ``SHAPE:DTYPE`` each; they go before the factory's.
        device: The ``torch.device``.

    Returns:
        What to call.

    Raises:
        SettingError: An input is not understood.
        LaunchError: The factory raised, or what it returned cannot be called.
    """
    import torch

    described = [_read_input(text) for text in inputs]
    torch.manual_seed(_SEED)
    try:
        made = factory()
    except (Exception, SystemExit) as error:
        raise _failed("The factory failed", error) from error
    model, given = made if isinstance(made, tuple) and len(made) == 2 else (made, None)  # noqa: PLR2004
    if not callable(model):
        raise LaunchError(
            f"The factory returned a {type(model).__name__}, which is no model.",
            hint="Return a torch.nn.Module or a function, alone or with its inputs.",
        )
    if described:
        given = tuple(_random_input(*shape_and_dtype) for shape_and_dtype in described)
    if given is None:
        raise LaunchError("The model has no inputs.", hint=_RETURN)
    try:
        model = model.to(device) if isinstance(model, torch.nn.Module) else model
        args, keywords = _arguments(to_device(given, device))
    except Exception as error:
        raise _failed(f"Model and inputs cannot be moved to {device}", error) from error
    return ModelCall(model=model, args=args, keywords=keywords)


def _arguments(given: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(given, dict):
        return (), given
    return (tuple(given) if isinstance(given, (tuple, list)) else (given,)), {}


def _read_input(text: str) -> tuple[tuple[int, ...], str]:
    import torch

    found = _SHAPE.fullmatch(text.replace(" ", ""))
    dtype = (found[2] or "float32") if found else ""
    if found is None or not isinstance(getattr(torch, dtype, None), torch.dtype):
        raise SettingError(
            f"--input {text!r} is not understood.", hint="Write SHAPE:DTYPE, such as 2,16:int64."
        )
    shape = tuple(int(part) for part in found[1].split(","))
    elements = 1
    for size in shape:
        elements *= size
    if not 0 < elements < _MOST_ELEMENTS:
        raise SettingError(
            f"--input {text!r} has {elements} elements.", hint="Give a shape that fits in memory."
        )
    return shape, dtype


def _random_input(shape: tuple[int, ...], dtype: str) -> Any:
    import torch

    kind = getattr(torch, dtype)
    try:
        if kind.is_floating_point or kind.is_complex:
            return torch.randn(shape).to(kind)
        return torch.randint(0, 2 if kind == torch.bool else _LARGEST_INTEGER, shape).to(kind)
    except RuntimeError as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise SettingError(
            f"PyTorch makes no random input of dtype {dtype}: {lines[0][:200]}",
            hint="Let the factory return (model, inputs).",
        ) from error


def plain(result: Any) -> Any:
    """Returns a model's result as containers of tensors; dataclass-like results have a dict."""
    if isinstance(result, (dict, list, tuple)) or hasattr(result, "requires_grad"):
        return result
    return dict(getattr(result, "__dict__", {}))


def _failed(what: str, error: BaseException) -> LaunchError:
    lines = str(error).strip().splitlines()
    said = f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
    return LaunchError(f"{what}: {said}", hint=_place(error))


def _place(error: BaseException) -> str:
    """Says where the user's file raised: the innermost frame of it, else of any file."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f"See {error.filename}, line {error.lineno}."
    trace, place = error.__traceback__, ""
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__") == _MODULE:
            place = f"See {trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno}."
        trace = trace.tb_next
    return place or "Run the file by itself to see more."
