"""``cuda-morph verify``: what agrees, what does not, what is not there, and what is refused."""

import json
import math
import subprocess
import sys

import pytest
import torch

from cuda_morph.chosen_device import request_device
from cuda_morph.errors import MorphError, SettingError
from cuda_morph.verification import comparison, database, operator_run, outcomes, references
from cuda_morph.verification.comparison import DifferenceError, Tolerance
from cuda_morph.verification.operator_run import run_operator

LOOSE = Tolerance(relative=1e-4, absolute=1e-5)


def morph(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "cuda_morph", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--backend", "cpu"], "comparing it with itself"),
        (["--device", "cpu"], "comparing it with itself"),
        (["--device", "cpu:0"], "comparing it with itself"),
        (["--backend", "cpu", "--device", "cuda:0"], "not 'cuda'"),
        (["--backend", "no-such-thing"], "CM-E01"),
        (["--device", "two words"], "is no device"),
        (["--device", ""], "is no device"),
        (["--device", "meta"], "have no values"),
        (["--backend", "sim", "--ops", "("], "no regular expression"),
        (["--backend", "sim", "--dtypes", "float32,floaty"], "floaty"),
        (["--backend", "sim", "--dtypes", ","], "No dtype"),
    ],
)
def test_hostile_requests_are_refused_with_a_reason(arguments, words, monkeypatch, capsys):
    monkeypatch.setattr(database, "load", list)  # the database takes seconds to import
    monkeypatch.setattr(database, "choose", lambda *_a, **_k: [])
    from cuda_morph.cli.entry import main

    code = main(["verify", *arguments])
    said = capsys.readouterr().err
    assert code == 2
    assert words in said
    assert "Traceback" not in said


def test_a_missing_database_is_said_clearly(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.testing._internal.common_methods_invocations", None)
    with pytest.raises(MorphError, match="database cannot be imported") as caught:
        database.load()
    assert "expecttest" in caught.value.hint


def test_device_finds_its_plugin():
    pytest.importorskip("cuda_morph_sim")
    assert request_device(None, "sim:0").backend == "sim"
    assert request_device("sim", "sim:1").device == "sim:1"
    assert request_device(None, "cuda:3").backend is None
    with pytest.raises(SettingError):
        request_device("sim", "cuda:0")


class Entry:
    """An operator as the database describes it, with one function for each device."""

    supports_autograd = True

    def __init__(self, function, device_function=None, name="made"):
        self.name = self.formatted_name = name
        self._function = function
        self._on_device = device_function or function

    def supported_dtypes(self, _device):
        return {torch.float32, torch.float16, torch.int64}

    supported_backward_dtypes = supported_dtypes

    def sample_inputs(self, device, dtype, requires_grad):
        from torch.testing._internal.opinfo.core import SampleInput

        values = torch.arange(1, 5, device=device).to(dtype)
        yield SampleInput(values.requires_grad_(requires_grad))

    def __call__(self, x):
        return (self._on_device if x.device.type == "sim" else self._function)(x)


@pytest.fixture(scope="module")
def sim():
    pytest.importorskip("cuda_morph_sim")
    import cuda_morph

    with cuda_morph.activate("sim", view="native"):
        yield torch.device("sim:0")


def run(sim, *functions, dtypes=("float32", "float16", "int64"), name="made"):
    return run_operator(Entry(*functions, name=name), sim, dtypes, samples=1)


def test_right_operators_pass_forward_and_gradient(sim):
    result = run(sim, lambda x: x * x)
    assert result.status == "pass"
    assert result.kernel == "native"
    kinds = {(case.dtype, case.direction, case.reference) for case in result.cases}
    assert ("float32", "gradient", "float64") in kinds
    assert ("float16", "forward", "float64") in kinds
    assert ("int64", "forward", "same dtype") in kinds


def test_the_cpu_in_64_bits_is_named_so_for_64_bit_samples(sim, monkeypatch):
    monkeypatch.setattr(Entry, "supported_dtypes", lambda *_: {torch.float64})
    result = run(sim, lambda x: x * x, dtypes=("float64",))
    assert {case.reference for case in result.cases} == {"float64"}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda x: x * x + 0.5, "x the tolerance"),
        (lambda x: (x * x)[:-1], "shape"),
        (lambda x: (x * x).double(), "dtype"),
        (lambda x: (x * x).cpu(), "is on the device cpu"),
        (lambda x: x * x * math.inf, "infinite or nan"),
        (lambda x: x * x.detach(), ""),
        (lambda _x: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_wrong_operators_fail(sim, wrong, words):
    result = run(sim, lambda x: x * x, wrong, dtypes=("float32",))
    assert result.status == "fail"
    assert any(words in case.detail for case in result.cases if case.status == "fail")


def test_an_unsupported_operator_is_never_a_pass(sim):
    def missing(x):
        raise NotImplementedError("made up")

    def no_half(x):
        if x.dtype == torch.float16:
            raise RuntimeError("\"mul\" not implemented for 'Half'")
        return x * x

    assert run(sim, lambda x: x * x, missing).status == "unsupported"
    partly = run(sim, lambda x: x * x, no_half)
    assert partly.status == "partly"
    assert partly.count("unsupported") == 2


def test_random_operators_are_held_against_shape_only(sim):
    def drawn(x):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)  # as the database does: another seed outside changes nothing
            return torch.rand(x.shape).to(x.device) * x

    result = run(sim, drawn, dtypes=("float32",))
    assert {case.reference for case in result.cases} == {"shape and dtype"}


def test_what_the_cpu_refuses_is_no_comparison(sim):
    def refuses(_x):
        raise RuntimeError("no")

    assert run(sim, refuses).status == "skipped"


def test_where_the_cpu_is_inexact_it_is_the_reference_itself(sim):
    # In 64 bits 1e-9 survives the addition, in 32 it does not.
    result = run(sim, lambda x: ((x + 1e-9) - x) * 1e9, dtypes=("float32",))
    forward = [case for case in result.cases if case.direction == "forward"]
    assert [case.reference for case in forward] == ["same dtype"]
    assert result.status == "pass"


@pytest.mark.parametrize(
    ("value", "status", "reference"),
    [(0.0, "pass", "same dtype"), (1.0, "pass", "float64"), (0.5, "fail", "same dtype")],
)
def test_a_device_may_be_nearer_to_64_bits_than_the_cpu(sim, value, status, reference):
    """As one is that adds products of half precision in single precision."""

    def lost_in_32_bits(x):
        return ((x + 1e-9) - x) * 1e9

    result = run(sim, lost_in_32_bits, lambda x: x * 0 + value, dtypes=("float32",))
    (forward,) = [case for case in result.cases if case.direction == "forward"]
    assert (forward.status, forward.reference) == (status, reference)
    assert forward.error.absolute == pytest.approx(value % 1, abs=1e-6)


def test_kernels_tell_fallback_from_native(sim):
    result = outcomes.OperatorResult(name="x", kernels={"a": "own", "b": "fallback"})
    assert result.kernel == "fallback"
    assert outcomes.OperatorResult(name="x", kernels={"a": "own", "c": "composed"}).kernel == (
        "native"
    )
    assert outcomes.OperatorResult(name="x").kernel == "unknown"


def test_measured_errors():
    one = comparison.measure(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]).double(), LOOSE)
    assert one.absolute == 0.5
    assert one.relative == pytest.approx(0.2)
    nan = torch.tensor([float("nan"), float("inf")])
    assert comparison.measure(nan, nan.double(), LOOSE).share == 0
    with pytest.raises(DifferenceError, match="not equal"):
        comparison.measure(torch.tensor([1]), torch.tensor([2]), LOOSE)
    with pytest.raises(DifferenceError, match="instead of a tensor"):
        comparison.measure(None, torch.tensor([2]), LOOSE)


def test_directions_hold_in_every_dtype():
    wide = references._direction(torch.empty(40, dtype=torch.float64))
    assert torch.equal(wide, references._direction(torch.empty(40, dtype=torch.bfloat16)).double())
    assert len(set(wide.tolist())) > 20


def test_refusals_are_told_from_failures():
    assert operator_run.is_refusal(RuntimeError("\"mul\" not implemented for 'Half'"))
    assert operator_run.is_refusal(NotImplementedError())
    assert not operator_run.is_refusal(RuntimeError("shapes do not match"))
    assert not operator_run.is_refusal(ValueError("not supported"))


@pytest.mark.long
def test_the_command_on_the_simulated_device(tmp_path):
    pytest.importorskip("cuda_morph_sim")
    pytest.importorskip("expecttest")
    page = tmp_path / "page.html"
    done = morph(
        *("verify", "--backend", "sim", "--ops", "^(mm|softmax|tensor_split|randint|topk)$"),
        *("--dtypes", "float32,int64", "--quick", "--format", "json", "--html", str(page)),
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["simulated"] is True
    assert answer["operators"]["pass"] == 5
    assert answer["cases"]["fail"] == 0
    assert answer["references"]["float64"] >= 5
    assert sum(answer["kernels"].values()) == 5
    assert "unknown" not in answer["kernels"]
    text = page.read_text()
    assert "simulated" in text
    assert "<script src" not in text
    assert "topk" in text
    missing = morph("verify", "--backend", "sim", "--ops", "^no_such_op$")
    assert missing.returncode == 2
    assert "matches" in missing.stderr
