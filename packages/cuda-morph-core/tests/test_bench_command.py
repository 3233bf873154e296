"""``cuda-morph bench``: figures that are measured, marked when simulated, and never made up."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch

import cuda_morph
from cuda_morph.benchmarks import charts, operators, overhead, timing
from cuda_morph.benchmarks.report import BenchReport, BenchRow
from cuda_morph.chosen_device import ChosenDevice
from cuda_morph.cli.entry import main

DEVICE = ChosenDevice(device="sim:0", backend="sim", display_name="S", simulated=True)
CPU = ChosenDevice(
    device=torch.device("cpu"), backend="torch", display_name="PyTorch", simulated=False
)


def bench(capsys, *arguments):
    code = main(["bench", *arguments])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return code, said.out, said.err


def test_percentiles():
    values = [float(n) for n in range(1, 101)]
    spread = timing.Spread.of(values[::-1])
    assert (spread.least, spread.p50, spread.p95, spread.p99) == (1, 50, 95, 99)
    assert timing.Spread.of([3.0]).p99 == 3
    assert timing.quartile_range([1.0]) == 0
    assert timing.quartile_range(values) == pytest.approx(50, abs=2)


def test_every_step_is_synchronised_and_warm_up_does_not_count():
    events = []
    times = timing.time_steps(
        lambda: events.append("step"), lambda: events.append("wait"), warm_up=2, steps=3
    )
    assert len(times) == 3
    assert events == ["step", "step", "wait"] + ["step", "wait"] * 3


def test_work_that_only_the_wait_shows_is_measured():
    times = timing.time_steps(lambda: None, lambda: time.sleep(0.01), warm_up=0, steps=3)
    assert min(times) >= 0.01


def test_calls_are_counted_out_of_the_sample():
    times, calls = timing.time_calls(lambda: time.sleep(0.0002), lambda: None, 3)
    assert calls < 20
    assert 0.0002 <= min(times) < 0.02


def test_a_slow_shim_shows():
    """The slow statement stands for a shim: the method must find it, and find none elsewhere."""

    def work(n):
        return sum(range(n))

    timed = [
        overhead.Statement(family="slow", native="work(100)", active="work(400)"),
        overhead.Statement(family="same", native="work(100)", active="work(100)"),
    ]
    namespace = {"work": work}
    overhead._calibrate(timed, namespace)
    for number in range(12):
        for active in (bool(number % 2), not number % 2):
            overhead._block(timed, namespace, "cpu", active=active)
    slow, same = (statement.row().fields["ratio"] for statement in timed)
    assert slow > 1.8
    assert 0.6 < same < 1.6
    assert not cuda_morph.is_active()


def test_overhead_of_the_cpu_backend(capsys):
    code, out, _ = bench(
        capsys, "overhead", "--backend", "cpu", "--rounds", "4", "--format", "json"
    )
    answer = json.loads(out)
    assert code == 0
    assert answer["settings"]["tier"] in {"T0", "T1"}
    rows = {row["name"]: row for row in answer["rows"]}
    assert rows["x.cuda()"]["family"] == "redirected"
    assert all(row["blocks"] == 4 and row["ratio"] > 0 for row in rows.values())
    assert not cuda_morph.is_active()


def test_overhead_refuses_an_active_process(capsys):
    with cuda_morph.activate("cpu"):
        code, _, err = bench(capsys, "overhead", "--backend", "cpu")
    assert code == 2
    assert "no native state" in err


def test_overhead_refuses_automatic_activation():
    """Which happens when PyTorch is imported, after the command has begun."""
    done = subprocess.run(
        [sys.executable, "-m", "cuda_morph", "bench", "overhead", "--backend", "cpu"],
        env=os.environ | {"CUDA_MORPH_AUTO_ACTIVATE": "1", "CUDA_MORPH_BACKEND": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "no native state" in done.stderr
    assert "Traceback" not in done.stderr


def test_ops_with_all_outputs(capsys, tmp_path):
    files = {kind: tmp_path / f"out.{kind}" for kind in ("html", "json", "csv")}
    given = [part for kind, file in files.items() for part in (f"--{kind}", str(file))]
    code, out, _ = bench(
        capsys,
        *("ops", "--device", "cpu", "--ops", "^(add|mm)$", "--dtypes", "float32", "--quick"),
        *("--samples", "3", *given),
    )
    assert code == 0
    assert "64x64 64x64" in out
    written = json.loads(files["json"].read_text())
    assert written["simulated"] is False
    assert all(row["p25_us"] <= row["p50_us"] <= row["p95_us"] for row in written["rows"])
    rows = list(csv.DictReader(io.StringIO(files["csv"].read_text())))
    assert [row["operator"] for row in rows] == ["add", "mm"]
    page = files["html"].read_text()
    assert page.count('<rect class="bar"') == 2
    assert 'class="mark"' not in page
    assert "<dd>float32</dd>" in page


def test_what_is_not_there_has_no_figures():
    def measure(name, dtype):
        case = [case for case in operators.CASES if case.name == name]
        return operators.measure_operators(
            CPU, case, [dtype], samples=3, quick=True, progress=lambda *_: None
        )

    report = measure("gelu", "int64")
    row = report.rows[0]
    assert row.status == "unsupported"
    assert row.fields["p50_us"] is None
    assert not report.ok
    assert "-" in report.table()[0]
    assert "unsupported" in report.page()
    assert "None" not in report.csv_text()


def test_model_on_the_simulated_device(capsys):
    pytest.importorskip("cuda_morph_sim")
    code, out, _ = bench(
        capsys, "model", "--backend", "sim", "--steps", "3", "--warm-up", "1", "--format", "json"
    )
    answer = json.loads(out)
    row = answer["rows"][0]
    assert code == 0
    assert answer["simulated"] is True
    assert answer["notes"][0].startswith("Simulated")
    assert row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"]
    assert row["tokens_per_s"] == pytest.approx(row["samples_per_s"] * 32)
    assert row["samples_per_s"] == pytest.approx(4 * 3 / sum(answer["seconds"]))


MODEL = """
import torch
def make():
    return torch.nn.Linear(4, 2)
def loud():
    print("a line on standard output")
    return make(), torch.ones(8, 4)
def nan():
    return (lambda x: {"loss": x.log()}), -torch.ones(3)
def slow():
    import time
    def step(x):
        open("running", "w").close()
        time.sleep(0.2)
        return x + 1
    return step, torch.ones(3)
def broken():
    raise OSError("weights are gone")
"""


def test_a_user_s_model_trains(capsys, tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    code, out, _ = bench(
        capsys,
        *("model", f"{tmp_path}/model.py:make", "--device", "cpu", "--input", "8,4", "--train"),
        *("--steps", "3", "--format", "json"),
    )
    row = json.loads(out)["rows"][0]
    assert code == 0
    assert row["step"] == "training"
    assert row["samples_per_s"] > 0
    assert row["tokens_per_s"] is None


def test_what_a_model_prints_is_not_in_the_answer(capsys, tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    target = f"{tmp_path}/model.py:loud"
    given = ("--device", "cpu", "--steps", "3", "--format", "json")
    code, out, err = bench(capsys, "model", target, *given)
    assert code == 0
    notes = json.loads(out)["notes"]
    assert not any("infinities" in note for note in notes)
    assert "a line on standard output" in err


def test_results_that_are_not_finite_are_said(capsys, tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    given = ("--device", "cpu", "--steps", "3")
    code, out, _ = bench(capsys, "model", f"{tmp_path}/model.py:nan", *given)
    assert code == 0
    assert "note: The model's results hold infinities or nan" in out


def test_ctrl_c_writes_nothing(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "old.csv").write_text("old")
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "cuda_morph", "bench", "model", f"{tmp_path}/model.py:slow"),
            *("--device", "cpu", "--steps", "500"),
            *("--csv", str(tmp_path / "old.csv"), "--json", str(tmp_path / "new.json")),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
    )
    end = time.monotonic() + 60
    while not (tmp_path / "running").exists() and time.monotonic() < end:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert (tmp_path / "old.csv").read_text() == "old"
    assert sorted(path.suffix for path in tmp_path.iterdir() if path.is_file()) == [
        "",
        ".csv",
        ".py",
    ]


def test_outputs_are_checked_before_anything_is_measured(capsys, tmp_path):
    given = ("overhead", "--backend", "cpu", "--rounds", "100000")
    code, out, err = bench(capsys, *given, "--csv", str(tmp_path))
    assert (code, out) == (2, "")
    assert "Is a directory" in err
    file = str(tmp_path / "x")
    code, _, err = bench(capsys, *given, "--csv", file, "--json", file)
    assert code == 2
    assert "--csv and --json name one file" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ops", "--device", "cpu", "--ops", "nothing_like_it"], "No operator of the benchmark"),
        (["ops", "--device", "cpu", "--ops", "["], "no regular expression"),
        (["ops", "--device", "cpu", "--dtypes", "float33"], "float33"),
        (["ops", "--device", "nowhere:0"], "nowhere"),
        (["ops", "--device", "cpu:999x"], "is no device"),
        (["ops", "--device", "cpu", "--samples", "1"], "samples"),
        (["overhead", "--backend", "no-such-thing"], "CM-E01"),
        (["overhead", "--rounds", "0"], "rounds"),
        (["model", "gone.py:make", "--device", "cpu"], "There is no file"),
        (["model", "FILE:make", "--device", "cpu"], "has no inputs"),
        (["model", "FILE:make", "--device", "cpu", "--input", "8,5"], "The model failed"),
        (["model", "FILE:broken", "--device", "cpu"], "weights are gone"),
        (["model", "FILE:make", "--device", "cpu", "--steps", "-1"], "steps"),
    ],
)
def test_bad_requests(capsys, tmp_path, arguments, words):
    (tmp_path / "model.py").write_text(MODEL)
    given = [part.replace("FILE", f"{tmp_path}/model.py") for part in arguments]
    code, _, err = bench(capsys, *given)
    assert code == 2
    assert words in err


def test_a_report_that_cannot_be_written_is_an_error(capsys, tmp_path):
    code, _, err = bench(
        capsys,
        *("ops", "--device", "cpu", "--ops", "^add$", "--quick", "--samples", "3"),
        *("--csv", str(tmp_path / "no" / "x.csv")),
    )
    assert code == 2
    assert "CM-E15" in err


def test_hostile_names_are_escaped():
    name = '<img src=x onerror="1">'
    row = BenchRow(name=name, fields={"a_us": 1.0}, bar=(1.0, 0.5, 2.0))
    page = BenchReport(kind="model", subject=name, device=DEVICE, rows=(row,)).page()
    assert "<img" not in page
    assert 'class="mark">simulated' in page


def test_charts_stay_within_their_width():
    assert charts.bars("t", []) == ""
    drawn = charts.bars("t", [("a", 1.0, -1.0, 4.0), ("b", 0.0, 0.0, 0.0)])
    assert 'x2="950.0"' in drawn
    assert 'x1="330.0"' in drawn


@pytest.mark.parametrize(
    "command", [["verify"], ["op", "audit"], ["bench", "ops"], ["bench", "model"]]
)
def test_examples_of_the_help_stand_on_lines_of_their_own(capsys, command):
    main([*command, "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"    cuda-morph {' '.join(command)} ") for line in lines)
    assert not any("\\b" in line or "\b" in line for line in lines)
