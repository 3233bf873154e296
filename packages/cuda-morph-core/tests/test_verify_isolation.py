"""Operators that crash or hang are rows of the report; everything else is compared all the same."""

import json
import subprocess
import sys
import time

import pytest
from fake_distributions import HEADER

from cuda_morph.chosen_device import DeviceRequest
from cuda_morph.errors import MorphError
from cuda_morph.verification import isolation
from cuda_morph.verification.report import row

REQUEST = DeviceRequest(backend="made", device=None, device_type="made")

WORKER = """
import json, os, sys, time
from pathlib import Path
from cuda_morph.worker_process import Answers
HERE = Path(__file__).parent
NAMES = ["good", "aborts", "hangs", "leaves", "late", "last"]

def case(tell, dtype, status="pass"):
    error = {"absolute": 0.0, "relative": 0.0, "share": 0.0}
    tell({"event": "case", "record": {"dtype": dtype, "direction": "forward", "number": 0,
          "status": status, "reference": "float64", "error": error, "detail": ""}})

def main(order):
    order = json.loads(order)
    answers = Answers()
    tell = answers.tell
    number = len(list(HERE.glob("start*")))
    (HERE / f"start{number}").touch()
    SETUP
    device = {"device": "made:0", "backend": "made", "display_name": "M", "simulated": False}
    print("welcome")
    tell({"event": "ready", "device": device, "names": NAMES})
    for index, name in enumerate(NAMES[order["first"]:], order["first"]):
        answers.forget_printed()
        tell({"event": "begin"})
        after = order["after"] if index == order["first"] else None
        for dtype in ("float32", "int64"):
            if after and dtype <= after[0]:
                continue
            where = "the CPU" if name == "late" else "the device"
            tell({"event": "place", "record": {"dtype": dtype, "direction": "forward",
                  "number": 0, "where": where}})
            if dtype == "float32":
                act(name)
            case(tell, dtype)
        tell({"event": "end"})
    tell({"event": "done"})
    os._exit(0)

def act(name):
    if name == "aborts":
        if os.fork() == 0:
            time.sleep(600)  # a helper of the driver, which holds on to every pipe
        print("welcome to the driver")
        print("driver: page fault", file=sys.stderr)
        os.abort()
    if name == "hangs":
        time.sleep(600)
    if name in ("leaves", "late"):
        os._exit(0)
"""


def verify(fake_site, monkeypatch, setup="pass", code=WORKER, seconds=2.0, dtypes=("float32",)):
    (fake_site.root / "made_worker.py").write_text(code.replace("SETUP", setup))
    fake_site.modules.append("made_worker")
    monkeypatch.setattr(isolation, "WORKER", "made_worker")
    order = isolation.Order(
        request=REQUEST, ops=None, dtypes=dtypes, quick=False, samples=1, seconds=seconds
    )
    told = []
    report = isolation.verify(order, lambda done, of: told.append((done, of)))
    assert told[-1] == (6, 6)
    return report


def test_what_crashes_or_hangs_is_its_own_row_and_nothing_is_lost(fake_site, monkeypatch):
    report = verify(fake_site, monkeypatch)
    found = {result.name: result for result in report.results}
    assert {name: result.status for name, result in found.items()} == {
        "good": "pass",
        "aborts": "crashed",
        "hangs": "timed out",
        "leaves": "crashed",
        "late": "crashed",
        "last": "pass",
    }
    # After a crash the operator's other dtypes are compared too, after a time-out they are not.
    assert {name: result.count("pass") for name, result in found.items()} == {
        "good": 2,
        "aborts": 1,
        "hangs": 0,
        "leaves": 1,
        "late": 1,
        "last": 2,
    }
    where = {name: row(result)[-1] for name, result in found.items()}
    assert where["aborts"].startswith("forward float32 #0: its process was ended by signal 6")
    assert where["aborts"].endswith("(SIGABRT): driver: page fault")
    assert where["hangs"] == "forward float32 #0: no result within 2 s"
    assert where["leaves"] == "forward float32 #0: it ended its process"
    assert "in PyTorch on the CPU, not on the device" in where["late"]
    assert not report.ok
    assert report.operators()["crashed"] == 3
    assert report.cases()["timed out"] == 1
    assert "3 crashed, 1 timed out, 2 pass; 7 comparisons" in report.summary()
    assert '<span class="timed-out">timed out</span>' in report.page()
    json.dumps(report.as_dict(), allow_nan=False)
    assert len(list(fake_site.root.glob("start*"))) == 5


def test_a_device_that_does_not_come_back_ends_the_run_with_its_rows(fake_site, monkeypatch):
    setup = "if number: sys.exit('the card fell off the bus')"
    report = verify(fake_site, monkeypatch, setup)
    statuses = [result.status for result in report.results]
    assert statuses == ["pass", "crashed", *["not run"] * 4]
    assert "the card fell off the bus" in row(report.results[-1])[-1]
    assert "4 not run" in report.summary()
    assert not report.ok
    assert 2 <= len(list(fake_site.root.glob("start*"))) <= 6


def test_crashes_without_end_are_given_up(fake_site, monkeypatch):
    monkeypatch.setattr(isolation, "_MOST_IN_A_ROW", 3)
    code = WORKER.replace('if name == "aborts"', 'if name != "good"').replace("int64", "uint8")
    code = code.replace('if dtype == "float32"', "if True")
    report = verify(fake_site, monkeypatch, code=code)
    statuses = [result.status for result in report.results]
    assert statuses == ["pass", "crashed", "crashed", *["not run"] * 3]


@pytest.mark.parametrize(
    ("setup", "words", "error_code"),
    [
        ("sys.exit('no driver')", "did not start: .*status 1: no driver", "CM-E02"),
        ("os.abort()", "signal 6", "CM-E02"),
        (
            'tell({"event": "error", "code": "CM-E06", "message": "m", "hint": "h"}); os._exit(0)',
            "m\n  next step: h",
            "CM-E06",
        ),
    ],
)
def test_what_never_starts_is_an_error(fake_site, monkeypatch, setup, words, error_code):
    with pytest.raises(MorphError, match=words) as caught:
        verify(fake_site, monkeypatch, setup)
    assert caught.value.code == error_code


def test_ctrl_c_ends_the_worker_too(fake_site, monkeypatch):
    """The worker's process is found by what it writes."""
    setup = '(HERE / "alive").write_text(str(os.getpid())); NAMES[0] = "hangs"'
    stopped, start = [], []

    def interrupt(_done, _of):
        stopped.append(int((fake_site.root / "alive").read_text()))
        start.append(time.monotonic())
        raise KeyboardInterrupt

    (fake_site.root / "made_worker.py").write_text(WORKER.replace("SETUP", setup))
    monkeypatch.setattr(isolation, "WORKER", "made_worker")
    order = isolation.Order(
        request=REQUEST, ops=None, dtypes=("float32",), quick=True, samples=1, seconds=60
    )
    with pytest.raises(KeyboardInterrupt):
        isolation.verify(order, interrupt)
    assert time.monotonic() - start[0] < 4
    assert not alive(stopped[0])


def alive(pid):
    done = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return bool(done.stdout.strip()) and not done.stdout.startswith("Z")


def test_a_worker_leaves_with_its_parent(fake_site):
    """Also where the parent has no time to end it."""
    (fake_site.root / "idle_worker.py").write_text(
        "import os, time\nfrom cuda_morph.worker_process import Answers\n"
        'def main():\n    Answers().tell({"pid": os.getpid()})\n    time.sleep(600)\n'
    )
    program = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "from cuda_morph.worker_process import WorkerProcess\n"
        "print(WorkerProcess('idle_worker', []).answer(60)['pid'], flush=True); os._exit(1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(fake_site.root)],
        capture_output=True,
        text=True,
        check=False,
    )
    end = time.monotonic() + 20
    while alive(int(done.stdout)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not alive(int(done.stdout))


CRASHING = (
    HEADER
    + """
@hookimpl
def cuda_morph_backend():
    return Backend(name="crashing", display_name="Crashing", vendor="Test", device_type="sim",
                   adapter_module=None, simulated=True)

@hookimpl
def cuda_morph_detect():
    return Detection(available=True, device_count=1)

@hookimpl
def cuda_morph_device_mapping():
    return DeviceMapping(target="sim", module="torch.sim", init=load)

def load():
    import os, sys, time, torch
    from cuda_morph_sim.loader import load
    module = load()
    def on_host(x, function):
        return function(x.cpu()).to(x.device)
    def digamma(x):
        if x.dtype == torch.float16:
            print("digamma: no half", file=sys.stderr, flush=True)
            os.abort()
        return on_host(x, torch.digamma)
    def trunc(x):
        if x.dtype == torch.int64:
            time.sleep(600)
        return on_host(x, torch.trunc)
    kernels = load.kernels = torch.library.Library("aten", "IMPL")
    kernels.impl("digamma", digamma, "PrivateUse1")
    kernels.impl("trunc", trunc, "PrivateUse1")
    return module
"""
)


@pytest.mark.long
def test_kernels_of_an_adapter_that_abort_and_hang(fake_site):
    pytest.importorskip("cuda_morph_sim")
    pytest.importorskip("expecttest")
    fake_site.add("crashing", CRASHING)
    program = (
        "import sys; sys.path.insert(0, sys.argv.pop(1))\n"
        "from cuda_morph.cli.entry import main; sys.exit(main())"
    )
    done = subprocess.run(
        [
            *(sys.executable, "-c", program, str(fake_site.root), "verify"),
            *("--backend", "crashing", "--ops", "^(digamma|mm|trunc|zeros_like)$"),
            *("--dtypes", "float32,float16,int64", "--timeout", "30", "--format", "json"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout)
    results = {result["operator"]: result for result in answer["results"]}
    assert {name: result["status"] for name, result in results.items()} == {
        "digamma": "crashed",
        "mm": "pass",
        "trunc": "timed out",
        "zeros_like": "pass",
    }
    cases = {
        (case["dtype"], case["direction"]): case["status"] for case in results["digamma"]["cases"]
    }
    assert cases["float32", "forward"] == cases["int64", "forward"] == "pass"
    assert cases["float16", "forward"] == "crashed"
    crash = next(case for case in results["digamma"]["cases"] if case["status"] == "crashed")
    assert crash["detail"].endswith("(SIGABRT): digamma: no half")
    (hang,) = [case for case in results["trunc"]["cases"] if case["status"] == "timed out"]
    assert hang["dtype"] == "int64"
    assert "Traceback" not in done.stderr
