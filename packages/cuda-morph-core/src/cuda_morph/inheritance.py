"""Activation at ``import torch``: for children of an active process and for the opt-in variable.

PyTorch calls `autoload` at the end of its own import, through core's ``torch.backends`` entry
point. An exception there would make ``import torch`` fail in every program of the environment, so
nothing may escape, and nothing is paid unless a variable asks for an activation.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

# The names are repeated from `environment`, which is only imported once one of them is set.
_INHERIT = "CUDA_MORPH_INHERIT"
_AUTO_ACTIVATE = "CUDA_MORPH_AUTO_ACTIVATE"
_FIELDS = ("backend", "view", "fallback", "tier")


class Owner(Protocol):
    """The launcher of this process: it activates by its own rules and reports its own errors."""

    def torch_imported(self) -> None:
        """Called at the end of ``import torch``."""


_owner: Owner | None = None
_owner_process: int | None = None


def take_ownership(owner: Owner) -> None:
    """Lets a launcher, in this process and in no child of it, decide on `autoload`.

    Args:
        owner: Told when torch has been imported.
    """
    global _owner, _owner_process
    _owner, _owner_process = owner, os.getpid()


def encode(*, backend: str | None, view: str | None, fallback: str | None, tier: str | None) -> str:
    """Returns the value of ``CUDA_MORPH_INHERIT`` that gives children the same activation.

    Args:
        backend: Backend to activate, ``None`` to choose again.
        view: View of the activation.
        fallback: What to do without an accelerator.
        tier: Forced interception tier, if one is.
    """
    import json

    return json.dumps({"backend": backend, "view": view, "fallback": fallback, "tier": tier})


def decode(text: str) -> Mapping[str, str | None]:
    """Reads a value that `encode` wrote; missing fields are ``None``.

    Raises:
        SettingError: The text is something else.
    """
    import json

    from cuda_morph.errors import SettingError

    try:
        found = json.loads(text)
    except ValueError:
        found = None
    settings = {name: found.get(name) for name in _FIELDS} if isinstance(found, dict) else {}
    if not settings or not all(isinstance(value, str | None) for value in settings.values()):
        raise SettingError(
            f"{_INHERIT}={text!r} is not understood.",
            hint=f"Unset {_INHERIT}: cuda-morph sets it for its own child processes.",
        )
    return settings


def autoload() -> None:
    """Called by PyTorch at the end of ``import torch``; activates when the environment says so."""
    if _INHERIT not in os.environ and _AUTO_ACTIVATE not in os.environ:
        return
    if _owner is not None and _owner_process == os.getpid():
        _owner.torch_imported()
        return
    try:
        _activate_from_environment()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - `import torch` must survive anything
        _say(error)


def let_torch_finish() -> None:
    """Imports what ``import torch`` still has to import after it has called `autoload`.

    That part reads whether PyTorch was built with CUDA and must read PyTorch's own answer.
    """
    import importlib

    try:
        importlib.import_module("torch._native")
    except ImportError:
        return  # other releases of PyTorch have no such module, or read nothing there


def _activate_from_environment() -> None:
    from cuda_morph import environment

    text = os.environ.get(_INHERIT)
    if text:
        settings = decode(text)
    elif environment.read_flag(environment.AUTO_ACTIVATE):
        settings = dict.fromkeys(_FIELDS)
    else:
        return
    from cuda_morph.activation import activate

    if settings["tier"]:
        os.environ.setdefault(environment.TIER.name, settings["tier"])
    let_torch_finish()
    activate(settings["backend"], view=settings["view"], fallback=settings["fallback"])


def _say(error: BaseException) -> None:
    """Writes one line; a process without a usable standard error stays silent."""
    try:
        reason = " ".join(str(error).split()) or type(error).__name__
        sys.stderr.write(f"cuda-morph: CUDA is not redirected in process {os.getpid()}: {reason}\n")
    except Exception:  # noqa: BLE001 - see above
        return
