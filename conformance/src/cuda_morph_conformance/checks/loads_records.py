"""Level ``loads``: the records say who the plugin is, in the types core reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cuda_morph import records
from cuda_morph.hook_calls import field_problem
from cuda_morph.hook_table import HOOKS
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from cuda_morph_conformance.subject import Subject

_DEVICE_TYPE = re.compile(r"[a-z][a-z0-9_]*")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


@check("CM-LOAD-020", level=Level.LOADS, since="0.1")
def name_matches(subject: Subject) -> None:
    """Backend.name MUST equal the name of the entry point.

    Fix: use one name in pyproject.toml and in ``Backend(name=...)``.
    """
    name = subject.backend().name
    require(name == subject.name, f"Backend.name is {name!r}, the entry point {subject.name!r}")


@check("CM-LOAD-021", level=Level.LOADS, since="0.1")
def identity_is_complete(subject: Subject) -> None:
    """The backend MUST give its display name, vendor, and device type as PyTorch prints it.

    Fix: fill the fields; a device type is lower case, such as ``npu``; a variable is upper case.
    """
    backend = subject.backend()
    for name in ("display_name", "vendor", "device_type"):
        require(str(getattr(backend, name)).strip(), f"Backend.{name} is empty")
    require(
        _DEVICE_TYPE.fullmatch(backend.device_type),
        f"Backend.device_type {backend.device_type!r} is no device type",
    )
    for name in ("visible_devices_env", "alloc_conf_env", "launch_blocking_env"):
        variable = getattr(backend, name)
        well_formed = variable is None or _VARIABLE.fullmatch(variable)
        require(well_formed, f"Backend.{name} {variable!r} is no variable name")


@check("CM-LOAD-022", level=Level.LOADS, since="0.1")
def speaks_the_spec(subject: Subject) -> None:
    """Backend.spec MUST be a version that this core speaks: same major, minor not newer.

    Fix: leave ``spec`` out, which takes the version of the core that the plugin was built with.
    """
    own = re.fullmatch(r"(\d+)\.(\d+)", subject.backend().spec)
    require(own, f"Backend.spec {subject.backend().spec!r} is not of the form 1.0")
    core = tuple(int(part) for part in records.SPEC.split("."))
    major, minor = (int(part) for part in own.groups()) if own else (0, 0)
    require(major == core[0] and minor <= core[1], f"{major}.{minor} against core {records.SPEC}")


@check("CM-LOAD-023", level=Level.LOADS, since="0.1")
def records_are_typed(subject: Subject) -> None:
    """Every hook that needs no vendor library MUST return its records, with fields of their types.

    Fix: return the dataclasses of ``cuda_morph.records``; a tuple is not a list, a str no bytes.
    """
    for name, hook in HOOKS.items():
        if hook.vendor_library == "yes" or not subject.implements(name):
            continue
        if set(hook.arguments) - {"torch_version"}:
            continue  # it is asked about something in particular
        answer = subject.call(name)
        if answer is None and not hook.required:
            continue
        for record in answer if hook.many else (answer,):
            require(type(record) in hook.records, f"{name} returned {record!r}")
            problem = field_problem(record)
            require(problem is None, f"{name}: {type(record).__name__}: {problem}")
