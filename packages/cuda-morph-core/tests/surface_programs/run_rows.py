"""Exercises every row of the table in this process and reports what is wrong with each.

Usage: python run_rows.py BACKEND VIEW REPORT
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
import traceback
import warnings
from pathlib import Path
from types import ModuleType

import rows_backends
import rows_c
import rows_devices
import rows_memory
import rows_parts
import rows_without_effect as without_effect
import torch
from world import World, raises

import cuda_morph
from cuda_morph import api_table
from cuda_morph.device.treatments import StubWarning
from cuda_morph.records import Treatment

BACKEND, VIEW, REPORT = sys.argv[1:]
CALLS = (
    rows_devices.CALLS | rows_memory.CALLS | rows_parts.CALLS | rows_c.CALLS | rows_backends.CALLS
)
STUBS = without_effect.STUBS | rows_backends.STUBS


def resolve(name):
    target = torch
    for part in name.split(".")[1:]:
        target = getattr(target, part)
    return target


def twin(name, calls):
    """Returns the call for another name of the same object, e.g. without ``.memory``."""
    target = resolve(name)
    for other, call in calls.items():
        if other.rpartition(".")[2] == name.rpartition(".")[2] and resolve(other) is target:
            return call
    return None


def answered(row, world):
    if isinstance(resolve(row.name), ModuleType) and row.name not in CALLS:
        assert sys.modules[row.name] is resolve(row.name)
        return
    call = CALLS.get(row.name) or twin(row.name, CALLS) or STUBS.get(row.name)
    assert call is not None, "no call exercises this row"
    call(world) if row.name not in STUBS else call()


def announced(row, world):
    """A stub warns at its first call of an activation, and at no other."""
    call = STUBS.get(row.name) or twin(row.name, STUBS)
    assert call is not None, "no call exercises this row"
    for expected in (1, 0):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        notices = [str(item.message) for item in caught if item.category is StubWarning]
        assert len(notices) == expected, notices
        assert all(row.note in notice for notice in notices), notices


def refused(row, world):
    target = resolve(row.name)
    call = without_effect.CAPTURES.get(row.name) or target
    message = raises(NotImplementedError, call, *required(call))
    for needed in ("CM-E07", row.note, row.replacement, "is refused on backend"):
        assert needed in message, message


def required(call):
    """Returns a value for each parameter that a call must have."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except ValueError:
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [1 for item in parameters if item.kind in kinds and item.default is item.empty]


def check_sum(backend):
    """Late imported functions are answered like early imported ones."""
    total = torch.cuda.comm.reduce_add([torch.ones(2, device="cuda:0")] * 2, 0)
    assert total.tolist() == [2, 2], backend


JUDGES = {Treatment.STUB: announced, Treatment.REFUSE: refused}


def main():
    problems = {}
    with cuda_morph.activate(BACKEND, view=VIEW):
        # The one module of torch.cuda that programs import themselves, here while active.
        importlib.import_module("torch.cuda.comm")
        check_sum(BACKEND)
    for row in api_table.by_name().values():
        # Each row in an activation of its own: a stub's notice is due once per activation.
        with cuda_morph.activate(BACKEND, view=VIEW) as activation:
            world = World(activation.tier, VIEW, BACKEND, activation)
            torch.manual_seed(0)
            try:
                JUDGES.get(row.treatment, answered)(row, world)
                problems[row.name] = ""
            except BaseException:
                problems[row.name] = traceback.format_exc()
    Path(REPORT).write_text(json.dumps(problems))
    # Interpreter shutdown frees what refused constructors left; it is not the subject.
    sys.stdout.flush()
    os._exit(0)


main()
