"""Every environment variable of cuda-morph: its name, its meaning, and how it is read."""

from __future__ import annotations

import os

from cuda_morph.errors import SettingError
from cuda_morph.frozen_record import frozen_record


@frozen_record
class Variable:
    """One environment variable and what it is for."""

    name: str
    meaning: str
    choices: tuple[str, ...] = ()


BACKEND = Variable(name="CUDA_MORPH_BACKEND", meaning="Backend used when none is named.")
VIEW = Variable(
    name="CUDA_MORPH_VIEW",
    meaning="Whose world the code sees: native or cuda.",
    choices=("native", "cuda"),
)
TIER = Variable(
    name="CUDA_MORPH_TIER",
    meaning="Forces one interception tier.",
    choices=("T0", "T1", "T3"),
)
FALLBACK = Variable(
    name="CUDA_MORPH_FALLBACK",
    meaning="What to do without an accelerator: run on cpu, or raise an error.",
    choices=("cpu", "error"),
)
PLUGINS = Variable(
    name="CUDA_MORPH_PLUGINS", meaning="Comma-separated list of the only plugins to load."
)
BLOCK = Variable(name="CUDA_MORPH_BLOCK", meaning="Comma-separated list of plugins not to load.")
STRICT = Variable(name="CUDA_MORPH_STRICT", meaning="1: a broken plugin is an error, not a row.")
NO_PATCH = Variable(
    name="CUDA_MORPH_NO_PATCH", meaning="1: activation changes nothing, even when asked for."
)
LOG_LEVEL = Variable(
    name="CUDA_MORPH_LOG_LEVEL",
    meaning="Level of the cuda_morph logger on standard error.",
    choices=("DEBUG", "INFO", "WARNING", "ERROR"),
)
AUTO_ACTIVATE = Variable(
    name="CUDA_MORPH_AUTO_ACTIVATE", meaning="1: activate whenever torch is imported."
)
INHERIT = Variable(
    name="CUDA_MORPH_INHERIT",
    meaning="Set by an active run for its child processes; JSON, not for people.",
)
DERIVED = Variable(
    name="CUDA_MORPH_DERIVED",
    meaning="Set by an active run: the backend's variables that were taken over from CUDA's.",
)
PORTABLE_CHECKPOINTS = Variable(
    name="CUDA_MORPH_PORTABLE_CHECKPOINTS",
    meaning="1: torch.save writes cuda:N as a tensor's location in the native view too.",
)
DTYPES = Variable(
    name="CUDA_MORPH_DTYPES",
    meaning="What to do with a dtype that the accelerator lacks: substitute or refuse.",
    choices=("substitute", "refuse"),
)
CUDA_VERSION = Variable(
    name="CUDA_MORPH_CUDA_VERSION",
    meaning="What torch.version.cuda says, for scripts that parse it; None when unset.",
)

VARIABLES: tuple[Variable, ...] = (
    BACKEND,
    VIEW,
    TIER,
    FALLBACK,
    PLUGINS,
    BLOCK,
    STRICT,
    NO_PATCH,
    LOG_LEVEL,
    AUTO_ACTIVATE,
    INHERIT,
    DERIVED,
    PORTABLE_CHECKPOINTS,
    DTYPES,
    CUDA_VERSION,
)

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"", "0", "false", "no", "off"})


def read(variable: Variable) -> str | None:
    """Returns the variable's value, or ``None`` when it is unset or empty.

    Raises:
        SettingError: The value is not one of the variable's choices.
    """
    value = os.environ.get(variable.name, "").strip()
    if not value:
        return None
    if variable.choices:
        return choose(value, variable.choices, variable.name)
    return value


def choose(value: str, choices: tuple[str, ...], where: str) -> str:
    """Returns the choice that equals `value` regardless of case.

    Raises:
        SettingError: There is none.
    """
    for choice in choices:
        if choice.lower() == value.lower():
            return choice
    raise SettingError(
        f"{where}={value!r} is not understood.", hint=f"Use one of: {', '.join(choices)}."
    )


def read_flag(variable: Variable) -> bool:
    """Returns whether a yes/no variable is set.

    Raises:
        SettingError: The value is neither a yes nor a no.
    """
    value = os.environ.get(variable.name, "").strip().lower()
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise SettingError(f"{variable.name}={value!r} is not understood.", hint="Use 1 or 0.")


def read_list(variable: Variable) -> tuple[str, ...]:
    """Returns the comma-separated items of the variable, without blanks."""
    items = os.environ.get(variable.name, "").split(",")
    return tuple(item.strip() for item in items if item.strip())


def has_names_of_cuda() -> bool:
    """Returns whether a variable of CUDA or NCCL is set, other than cuda-morph's own."""
    return any(
        ("CUDA" in name or "NCCL" in name) and not name.startswith("CUDA_MORPH_")
        for name in os.environ
    )
