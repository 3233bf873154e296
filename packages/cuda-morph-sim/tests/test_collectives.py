from __future__ import annotations

from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("rank_programs")
START = "import runpy, sys; sys.path.insert(0, {folder!r}); runpy.run_path({path!r}, run_name='__main__')"


def run(python, name, **options):
    command = START.format(folder=str(PROGRAMS), path=str(PROGRAMS / f"{name}.py"))
    return python(command, **options)


@pytest.mark.parametrize("name", ["collectives", "limits", "sharding", "failures"])
def test_two_ranks(python, name):
    done = run(python, name, expect=None)
    assert "both ranks done" in done.stdout, done.stdout + done.stderr


def test_in_detail_debugging_the_group_is_checked(python):
    done = run(python, "limits", expect=None, TORCH_DISTRIBUTED_DEBUG="DETAIL")
    assert "both ranks done" in done.stdout, done.stdout + done.stderr


def test_registering_twice_changes_nothing(sim):
    from torch.distributed import Backend

    assert sim.register_collectives()
    assert sim.register_collectives()
    assert Backend.backend_capability["gloo"].count("sim") == 1
    assert Backend.backend_capability["simccl"] == ["sim"]
    assert Backend.default_device_backend_map["sim"] == "simccl"


@pytest.mark.parametrize(
    ("limits", "word"), [({"ops": ("allreduce",)}, "allreduce"), ({"dtypes": ("fp32",)}, "fp32")]
)
def test_a_word_that_means_nothing_is_refused(sim, limits, word):
    from cuda_morph_sim import process_group

    with pytest.raises(ValueError, match=word):
        process_group.register("misspelt", "sim", **limits)
