"""Ranks stay from check to check; one that fails, dies or hangs is the outcome of its check."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import rank_functions

from cuda_morph_conformance.rank_pool import RankPool
from cuda_morph_conformance.registry import CheckFailed, NotRun
from cuda_morph_conformance.subject import Subject

pytest.importorskip("torch")
pytest.importorskip("cuda_morph_sim")


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    return tmp_path_factory.mktemp("ranks") / "notes.txt"


@pytest.fixture(scope="module")
def ranks(notes):
    settings = {
        "PYTHONPATH": os.pathsep.join(
            [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        ),
        "CUDA_MORPH_SIM_DEVICES": "2",
        "OMP_NUM_THREADS": "1",
        "RANK_NOTES": str(notes),
    }
    pool = RankPool(Subject("sim", view="cuda", _environment={**os.environ, **settings}))
    yield pool
    pool.close()


@pytest.fixture
def processes(ranks, notes):
    """Returns the processes that the ranks are in now."""

    def ask():
        notes.unlink(missing_ok=True)
        ranks.run(rank_functions.notes_its_process)
        return dict(line.split() for line in notes.read_text().splitlines())

    return ask


def test_ranks_are_used_again(ranks, processes):
    before = processes()
    assert sorted(before) == ["0", "1"]
    ranks.run(rank_functions.passes)
    ranks.run(rank_functions.makes_its_own_group, bare=True)
    ranks.run(rank_functions.passes)
    assert processes() == before


def test_a_sentence_that_does_not_hold(ranks, processes):
    before = processes()
    with pytest.raises(CheckFailed, match="rank 1: rank one says no"):
        ranks.run(rank_functions.fails_on_one)
    ranks.run(rank_functions.passes)
    assert processes() == before


def test_a_check_that_is_not_run(ranks):
    with pytest.raises(NotRun, match="nothing to see"):
        ranks.run(rank_functions.is_skipped)
    ranks.run(rank_functions.passes)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("raises_on_one_while_the_other_waits", "rank 0: raised KeyError: 'surprise'"),
        ("dies", "rank 1: the process died of SIGSEGV"),
        ("leaves", "rank 0: the process ended with exit code 5; last line: the last word"),
    ],
)
def test_new_ranks_after_a_loss(ranks, processes, function, message):
    before = processes()
    begin = time.monotonic()
    with pytest.raises(CheckFailed, match=message):
        ranks.run(getattr(rank_functions, function))
    assert time.monotonic() - begin < 15, "nobody waits for a rank that waits for a lost one"
    ranks.run(rank_functions.passes)
    assert set(processes().values()).isdisjoint(before.values())


def test_a_rank_that_hangs(ranks):
    with pytest.raises(CheckFailed, match="rank 1 did not end within the time allowed"):
        ranks.run(rank_functions.hangs, limit=1)
    ranks.run(rank_functions.passes)


def test_a_plugin_that_cannot_be_activated():
    environment = {**os.environ, "CUDA_MORPH_SIM_DEVICES": "not a number"}
    pool = RankPool(Subject("sim", _environment=environment))
    with pytest.raises(CheckFailed, match="activation raised"):
        pool.run(rank_functions.passes)
