"""The calls of the API table's rows: none is missing, and they name PyTorch's own parameters."""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys

import pytest
import torch
import torch.cuda.comm
import torch.cuda.tunable

from cuda_morph import api_table
from cuda_morph.records import Treatment
from cuda_morph_conformance.api_calls import calls
from cuda_morph_conformance.checks import api_table as checks
from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.registry import CHECKS

load_all()
CALLED = {
    row.name.removeprefix("torch.")
    for row in api_table.load()
    if row.treatment not in (Treatment.ALIAS, Treatment.REFUSE)
    and row.kind in ("function", "class", "c_function")
    and not row.name.endswith(("Tensor", "Storage"))
}
PLAIN = sorted(name for name in CALLED if not name.startswith("_C.") and name != "cuda.nvtx.range")


def test_every_row_that_answers_has_a_call() -> None:
    assert calls().keys() == CALLED


@pytest.mark.parametrize("name", PLAIN)
def test_calls_use_all_of_pytorchs_parameters(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {}

    class Answer:
        def __enter__(self):
            return self

        def __exit__(self, *_error):
            pass

    def record(*args, **kwargs):
        assert not args
        given.update(kwargs)
        return Answer()

    tensor = torch.ones
    monkeypatch.setattr(torch, "ones", lambda *args, **_: tensor(*args))
    for needed in ("current_device", "current_stream", "get_rng_state", "get_rng_state_all"):
        monkeypatch.setattr(torch.cuda, needed, lambda: None)
    for needed in ("range_start", "range_push", "range_pop", "range_end"):
        monkeypatch.setattr(torch.cuda.nvtx, needed, lambda *_args, **_kwargs: None)
    own = inspect.signature(ORIGINALS[name]).parameters
    calls()[name][0](record)
    assert set(given) == set(own)


ORIGINALS = {
    name: functools.reduce(getattr, name.split("."), torch)  # before anything is replaced
    for name in PLAIN
}


def test_every_row_is_walked_by_a_check() -> None:
    walked = {area for check in CHECKS.values() if check.area == "API" for area in areas_of(check)}
    areas = {checks.area_of(row) for row in api_table.load()}
    assert areas - {"types"} == walked


def areas_of(check) -> set[str]:
    source = inspect.getsource(check.run)
    named = {checks.area_of(row) for row in api_table.load()}
    return {area for area in named if f'"{area}"' in source} if "walk(" in source else set()


BROKEN = """
import sys
import cuda_morph_conformance.checks.api_table as checks
from cuda_morph_conformance.registry import CheckFailed
from cuda_morph_conformance.subject import Subject
subject = Subject("cpu", view="cuda")
with subject.activate():
    import torch
    def lies(*_args, **_kwargs): {body}
    {owner}.{name} = lies
    try:
        checks.walk(subject, "{area}")
    except CheckFailed as failure:
        print("caught", failure)
"""


@pytest.mark.parametrize(
    ("owner", "name", "area", "body", "said"),
    [
        ("torch.cuda", "synchronize", "devices", "raise AttributeError('no driver')", "no driver"),
        ("torch.cuda", "memory_allocated", "memory", "return None", "returned 'None'"),
        ("torch.cuda", "make_graphed_callables", "streams", "return _args", "is refused"),
        ("torch._C", "_cuda_getDeviceCount", "torch._C", "return '1'", "returned '1'"),
        ("torch.cuda.nvtx", "range_push", "nvtx", "pass", "range_push"),
    ],
)
def test_a_wrong_row_is_found(owner: str, name: str, area: str, body: str, said: str) -> None:
    source = BROKEN.format(owner=owner, name=name, area=area, body=body)
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("caught")
    assert f"{owner}.{name}" in done.stdout
    assert said in done.stdout
