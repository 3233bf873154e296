"""Errors with a stable code, the thing they concern and the next step."""

from __future__ import annotations

import importlib
from typing import cast

from cuda_morph.frozen_record import frozen_record


@frozen_record
class ErrorKind:
    """One entry of the catalogue: the code and what it stands for."""

    code: str
    title: str


CATALOGUE: tuple[ErrorKind, ...] = (
    ErrorKind(code="CM-E01", title="unknown backend"),
    ErrorKind(code="CM-E02", title="backend not available"),
    ErrorKind(code="CM-E03", title="ambiguous backend"),
    ErrorKind(code="CM-E04", title="activation failed and was rolled back"),
    ErrorKind(code="CM-E05", title="no interception tier works here"),
    ErrorKind(code="CM-E06", title="setting or argument not understood"),
    ErrorKind(code="CM-E07", title="CUDA name refused on this backend"),
    ErrorKind(code="CM-E08", title="PyTorch missing or unusable"),
    ErrorKind(code="CM-E09", title="plugin broken or incompatible"),
    ErrorKind(code="CM-E10", title="another backend is already active"),
    ErrorKind(code="CM-E11", title="script cannot be run"),
    ErrorKind(code="CM-E12", title="simulated device cannot be built"),
    ErrorKind(code="CM-E13", title="view not available on this tier"),
    ErrorKind(code="CM-E14", title="out of simulated device memory"),
    ErrorKind(code="CM-E15", title="file cannot be read or written"),
)
"""Every code, in order. Codes are never reused."""


class MorphError(RuntimeError):
    """Base of all errors raised by cuda-morph.

    Args:
        message: What happened, and on which device, plugin or API.
        hint: What to do next; printed on its own line.
        code: A code of `CATALOGUE`; defaults to the class's own.
    """

    code = "CM-E04"

    def __init__(self, message: str, *, hint: str = "", code: str | None = None) -> None:
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code
        super().__init__(message)

    def __str__(self) -> str:
        text = f"[{self.code}] {self.message}"
        return f"{text}\n  next step: {self.hint}" if self.hint else text


class UnknownBackendError(MorphError):
    """The named backend is not installed."""

    code = "CM-E01"


class BackendUnavailableError(MorphError):
    """The backend is installed but cannot be used now."""

    code = "CM-E02"


class AmbiguousBackendError(MorphError):
    """Several backends could be meant and none was named."""

    code = "CM-E03"


class ActivationError(MorphError):
    """Activation failed; everything it had changed was put back."""

    code = "CM-E04"


class TierError(MorphError):
    """No interception tier, or not the forced one, works in this process."""

    code = "CM-E05"


class SettingError(MorphError, ValueError):
    """An argument or an environment variable has a value that is not understood."""

    code = "CM-E06"


class RefusedError(MorphError, NotImplementedError):
    """A CUDA name that has no honest answer on this backend."""

    code = "CM-E07"


class TorchMissingError(MorphError):
    """PyTorch is not installed or cannot be imported."""

    code = "CM-E08"


class PluginError(MorphError):
    """A plugin is broken, incompatible or in conflict with another one."""

    code = "CM-E09"


class AlreadyActiveError(MorphError):
    """Another backend or view is active in this process."""

    code = "CM-E10"


class LaunchError(MorphError):
    """The script, module or code given to ``cuda-morph run`` cannot be run."""

    code = "CM-E11"


class ViewError(MorphError):
    """The requested view cannot be given honestly on this tier."""

    code = "CM-E13"


def translate(error: BaseException, backend: str | None = None) -> BaseException:
    """Gives the exception of PyTorch that stands for a vendor's failure.

    While a backend is active the compiled tier does this by itself for errors that PyTorch raises.

    Args:
        error: What the vendor's software raised.
        backend: Plugin whose codes count; ``None``: all that are installed.

    Returns:
        A new exception with the vendor's text, code, meaning and remedy, whose ``__cause__`` is
        `error`; or `error` itself when nothing is known about it.

    Raises:
        UnknownBackendError: The named plugin is not installed.

    Example:
        try:
            step()
        except RuntimeError as error:
            raise cuda_morph.errors.translate(error) from error
    """
    # By name: this module is the lowest, and the codes come from plugins, above it.
    translation = importlib.import_module("cuda_morph.error_translation")
    return cast("BaseException", translation.translate(error, backend))
