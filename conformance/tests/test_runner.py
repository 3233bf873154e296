"""How checks are grouped into processes, and how measuring ones are kept apart."""

from __future__ import annotations

import threading
import time

from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.runner import MEASURING, Quiet, all_keys, batches
from cuda_morph_conformance.vocabulary import AREAS, Level

load_all()


def test_every_result_is_in_exactly_one_batch():
    listed = [(name, batch.view) for batch in batches(all_keys()) for name in batch.ids]
    assert sorted(listed, key=str) == sorted(all_keys(), key=str)


def test_fresh_checks_are_alone_and_others_share_one_process_per_view():
    made = batches(all_keys())
    for batch in made:
        if any(CHECKS[name].fresh for name in batch.ids):
            assert len(batch.ids) == 1
    shared = [batch for batch in made if CHECKS[batch.ids[0]].active and not batch.quiet]
    assert sorted(str(batch.view) for batch in shared) in (
        ["cuda", "native"],
        ["None", "cuda", "native"],
    )
    assert all(len(batch.ids) == max(len(b.ids) for b in made) for batch in made[:1])


def test_no_batch_mixes_checks_with_and_without_activation():
    for batch in batches(all_keys()):
        assert len({CHECKS[name].active for name in batch.ids}) == 1


def test_checks_that_measure_time_have_batches_of_their_own():
    assert set(AREAS) >= MEASURING
    for batch in batches(all_keys()):
        assert {CHECKS[name].area in MEASURING for name in batch.ids} == {batch.quiet}


def test_quiet_work_waits_for_all_runs_and_is_done_one_by_one():
    quiet, log = Quiet(3), []

    def run(name):
        time.sleep(0.05 * name)
        log.append("loud")
        with quiet.alone():
            log.append("in")
            time.sleep(0.02)
            log.append("out")

    threads = [threading.Thread(target=run, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert log == ["loud"] * 3 + ["in", "out"] * 3


def test_a_run_that_failed_keeps_nobody_waiting():
    quiet = Quiet(2)
    quiet.leave()
    with quiet.alone():
        pass


def test_levels_of_fresh_and_loads_checks_are_never_active():
    for check in CHECKS.values():
        assert check.active == (check.level is not Level.LOADS and not check.fresh)
