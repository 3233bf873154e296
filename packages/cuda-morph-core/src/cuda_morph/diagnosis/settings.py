"""Findings on environment variables: values, spelling, and two that contradict each other."""

from __future__ import annotations

import difflib
import os
import re
import shutil
from typing import TYPE_CHECKING

from cuda_morph import environment
from cuda_morph.diagnosis.finding import Finding, Level
from cuda_morph.errors import MorphError
from cuda_morph.visible_lists import cuda_like

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cuda_morph.records import Backend

_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_CUDA_VISIBLE = "CUDA_VISIBLE_DEVICES"
_NUMBER = re.compile(r"\d+")
_FLAGS = (environment.STRICT, environment.NO_PATCH, environment.AUTO_ACTIVATE)


def look(backends: Iterable[Backend], plugin_names: Iterable[str]) -> Iterator[Finding]:
    """Looks at all variables.

    Args:
        backends: The accelerators that are present or asked for.
        plugin_names: Every plugin that is installed.

    Yields:
        What was found; one line when nothing is wrong.
    """
    found = [*_own(tuple(plugin_names)), *_torch_s(), *_cuda_s(), *_twins(backends)]
    yield from found
    if not found:
        text = "no variable is wrong or contradicts another"
        yield Finding(id="settings", level=Level.OK, message=text)


def _own(plugin_names: tuple[str, ...]) -> Iterator[Finding]:
    known = {variable.name: variable for variable in environment.VARIABLES}
    for name in sorted(name for name in os.environ if name.startswith("CUDA_MORPH_")):
        if name in known:
            yield from _value(known[name])
            continue
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
        if close:
            yield _finding(name, Level.WARN, "nothing reads it", f"Did you mean {close[0]}?")
    wanted = os.environ.get(environment.BACKEND.name, "").strip()
    for part in filter(None, wanted.split(":")):
        if part not in plugin_names:
            text = f"{wanted!r}: there is no plugin {part!r}"
            fix = f"Installed: {', '.join(plugin_names)}."
            yield _finding(environment.BACKEND.name, Level.FAIL, text, fix)
    if os.environ.get(environment.NO_PATCH.name, "").strip() in {"1", "true", "yes", "on"}:
        text, fix = "activation changes nothing", f"Unset {environment.NO_PATCH.name}."
        yield _finding(environment.NO_PATCH.name, Level.WARN, text, fix)


def _value(variable: environment.Variable) -> Iterator[Finding]:
    try:
        environment.read(variable)
        if variable in _FLAGS:
            environment.read_flag(variable)
    except MorphError as error:
        fix = error.hint or f"Unset {variable.name}."
        yield _finding(variable.name, Level.FAIL, error.message, fix)


def _torch_s() -> Iterator[Finding]:
    if os.environ.get(_AUTOLOAD) == "0":
        text = "PyTorch loads no adapter by itself, and cuda-morph does not reach child processes"
        yield _finding(_AUTOLOAD, Level.WARN, text, f"Unset {_AUTOLOAD}, or set it to 1.")
    compiler = os.environ.get("CXX")
    if compiler is not None and shutil.which(next(iter(compiler.split()), "")) is None:
        text = f"{compiler!r} is no program, and PyTorch takes no other C++ compiler"
        yield _finding("CXX", Level.WARN, text, "Unset CXX, or name a C++ compiler.")


def _cuda_s() -> Iterator[Finding]:
    value = os.environ.get(_CUDA_VISIBLE)
    problem = ""
    if value is not None:
        problem = cuda_like(("GPU-", "MIG-"))(value) or _cut_short(value)
    if problem:
        text = f"{value!r}: {problem}"
        yield _finding(_CUDA_VISIBLE, Level.WARN, text, "Write numbers such as 0,1,3.")


def _cut_short(value: str) -> str:
    """CUDA takes the number at the start of an item, and is silent about the rest."""
    for item in map(str.strip, value.split(",")):
        number = _NUMBER.match(item)
        if number is not None and number[0] != item:
            return f"{item!r} counts as {int(number[0])}."
    return ""


def _twins(backends: Iterable[Backend]) -> Iterator[Finding]:
    for backend in backends:
        for cuda_s, own in (
            (_CUDA_VISIBLE, backend.visible_devices_env),
            ("PYTORCH_CUDA_ALLOC_CONF", backend.alloc_conf_env),
            ("CUDA_LAUNCH_BLOCKING", backend.launch_blocking_env),
        ):
            if own in (None, cuda_s) or cuda_s not in os.environ or own not in os.environ:
                continue
            if os.environ[cuda_s] != os.environ[own]:
                text = f"{own}={os.environ[own]!r} and {cuda_s}={os.environ[cuda_s]!r}"
                fix = f"Keep one: with {backend.display_name}, {own} wins under cuda-morph."
                yield _finding(own, Level.WARN, text, fix)


def _finding(variable: str, level: Level, message: str, fix: str) -> Finding:
    return Finding(id=f"settings.{variable}", level=level, message=message, fix=fix)
