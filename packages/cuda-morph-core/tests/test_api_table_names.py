"""The table has a row for each CUDA name of the installed torch, and for no other."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path

from cuda_morph import api_table
from cuda_morph.records import Treatment

PROGRAM = Path(__file__).parent / "surface_programs" / "live_names.py"
ABOUT = "add or remove rows in api_table/cuda_api.json or cuda_backends.json"


@functools.cache
def live() -> dict[str, set[str]]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], capture_output=True, text=True, check=True, timeout=120
    )
    return {kind: set(names) for kind, names in json.loads(done.stdout).items()}


def rows(prefix: str) -> set[str]:
    return {name for name in api_table.by_name() if name.startswith(prefix)}


def test_every_public_name_has_a_row() -> None:
    assert live()["public"] - rows("torch.cuda.") == set(), ABOUT


def test_every_row_of_a_public_name_is_live() -> None:
    assert rows("torch.cuda.") - live()["public"] == set(), ABOUT


def test_every_c_name_that_torch_mentions_has_a_row() -> None:
    assert live()["c"] - rows("torch._C.") == set(), ABOUT


def test_every_row_of_a_c_name_is_mentioned() -> None:
    assert rows("torch._C.") - live()["c"] == set(), ABOUT


def test_every_name_of_the_libraries_has_a_row() -> None:
    assert live()["libraries"] - rows("torch.backends.") == set(), ABOUT


def test_every_row_of_a_library_is_live() -> None:
    modules = {"torch.backends.cuda", "torch.backends.cudnn"}
    assert rows("torch.backends.") - live()["libraries"] == modules, ABOUT


def test_the_search_finds_what_is_known_to_be_there() -> None:
    assert {"torch.cuda.synchronize", "torch.cuda.amp.autocast"} <= live()["public"]
    assert {"torch._C._cuda_getDevice", "torch._C._cuda_memoryStats"} <= live()["c"]
    assert len(live()["public"]) > 250
    assert len(live()["c"]) > 80
    assert len(live()["libraries"]) > 50


def test_names_are_unique() -> None:
    assert len(api_table.by_name()) == len(api_table.load()) + len(api_table.library_rows())


def test_every_row_says_what_it_does() -> None:
    assert [
        row.name for row in api_table.by_name().values() if not row.note.endswith((".", "]"))
    ] == []


def test_refusals_name_a_replacement() -> None:
    refused = [row for row in api_table.by_name().values() if row.treatment is Treatment.REFUSE]
    assert [row.name for row in refused if not row.replacement] == []


def test_who_answers_fits_the_treatment() -> None:
    for row in api_table.by_name().values():
        assert (row.how == "refuse") is (row.treatment is Treatment.REFUSE), row.name
        assert (row.how == "class") <= (row.treatment is Treatment.ALIAS), row.name
