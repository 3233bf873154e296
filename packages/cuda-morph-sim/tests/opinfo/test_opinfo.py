import json

import pytest
import torch

from cuda_morph_sim.opinfo import cases, comparison, known_misses, report
from cuda_morph_sim.opinfo.cases import EntryResult

SUBSET = 120


@pytest.fixture(scope="module")
def database():
    pytest.importorskip("expecttest")
    from torch.testing._internal.common_methods_invocations import op_db

    return op_db


def test_a_part_of_the_operator_database_agrees(python, tmp_path):
    pytest.importorskip("expecttest")
    outcome = tmp_path / "outcome.json"
    program = (
        "from cuda_morph_sim.opinfo.__main__ import main\n"
        f"raise SystemExit(main(['--subset', '{SUBSET}', '--json', {str(outcome)!r}]))\n"
    )
    done = python(program)
    found = json.loads(outcome.read_text())
    assert found["percent"] >= 99
    assert found["entries"] > SUBSET * 0.9
    assert found["cases"] > 4 * found["entries"]
    assert "agree with the CPU" in done.stdout


def test_the_subset_is_the_same_every_time(database):
    from cuda_morph.verification.database import select

    first = [op.formatted_name for op in select(database, 40)]
    assert first == [op.formatted_name for op in select(list(reversed(database)), 40)]
    assert len(first) == 40
    assert len(select(database, None)) == len(database)


def test_every_known_miss_is_an_operator_and_has_a_reason(database):
    names = {op.formatted_name for op in database}
    for name, reason in known_misses.read_known_misses().items():
        assert name in names
        assert len(reason) > 20


def test_unexpected_misses_and_passes_are_found():
    results = [
        EntryResult(name="fine", cases=1),
        EntryResult(name="wrong", cases=1, misses=["forward: no"]),
        EntryResult(name="listed", cases=1, misses=["forward: no"]),
        EntryResult(name="recovered", cases=1),
        EntryResult(name="unsupported"),
    ]
    verdict = known_misses.judge(results, {"listed": "why", "recovered": "why", "unrun": "why"})
    assert [miss.name for miss in verdict.unexpected_misses] == ["wrong"]
    assert verdict.unexpected_passes == ("recovered",)
    assert not verdict.clean
    assert report.percent(results) == 50.0
    assert (
        report.as_dict(results, {"listed": "why"}, verdict)["misses"]["listed"]["reason"] == "why"
    )


class WrongOnDevice:
    """An operator that is off by one on any device but the CPU."""

    formatted_name = name = "wrong"
    supports_autograd = False

    def supported_dtypes(self, device):
        return {torch.float32}

    def sample_inputs(self, device, dtype, requires_grad):
        from torch.testing._internal.opinfo.core import SampleInput

        return iter([SampleInput(torch.ones(3), args=(), kwargs={})])

    def __call__(self, x):
        return x if x.device.type == "cpu" else x + 1


def test_a_wrong_operator_is_a_miss(sim):
    result = cases.run_entry(WrongOnDevice(), torch.device("sim"))
    assert result.counted
    assert not result.passed
    assert "Tensor-likes are not close" in result.misses[0]


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (torch.ones(2), torch.ones(2)),
        (1, 2),
        ((1, 2), (1,)),
        (3, torch.ones(1)),
    ],
)
def test_differences_are_told(actual, expected):
    with pytest.raises(comparison.DifferenceError):
        comparison.check_equal(actual, expected)


def test_shapes_and_dtypes_count_even_without_contents(sim):
    with pytest.raises(comparison.DifferenceError, match="dtype"):
        comparison.check_equal(
            torch.empty(2, device="sim", dtype=torch.int64), torch.empty(2), contents=False
        )
    comparison.check_equal(torch.ones(2, device="sim"), torch.zeros(2), contents=False)
