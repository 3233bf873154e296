"""``cuda-morph op audit``: native and fallback operators of a model, and files that are no good."""

import json

import pytest

from cuda_morph import model_factory
from cuda_morph.chosen_device import ChosenDevice
from cuda_morph.cli.entry import main
from cuda_morph.operator_audit import AuditReport, AuditRow

MODEL = """
import torch
from neighbour import WIDTH

def plain():
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, 8), torch.nn.ReLU())

def with_inputs():
    return plain(), torch.ones(2, WIDTH)

def function():
    return (lambda x, y: {"sum": x.cuda() + y}), {"x": torch.ones(2), "y": torch.ones(2)}

def raises():
    raise ValueError("no weights here")

def leaves():
    raise SystemExit("bye")

def loud():
    print("a line on standard output")
    return with_inputs()

def number():
    return 7

def falls_back():
    library = torch.library.Library("morphaudit", "FRAGMENT")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x + x, "CPU")
    falls_back.library = library
    return torch.ops.morphaudit.twice, torch.ones(3)

def on_host():
    return (lambda: 1), ()

class NotAFunction:
    pass

constant = 3
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    pytest.importorskip("cuda_morph_sim")
    (tmp_path / "neighbour.py").write_text("WIDTH = 16\n")
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    return file


def audit(capsys, target, *arguments):
    code = main(["op", "audit", str(target), "--backend", "sim", *arguments])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return code, said.out, said.err


def test_operators_of_a_model(model, capsys):
    code, out, _ = audit(
        capsys, f"{model}:plain", "--input", "2,16", "--backward", "--format", "json"
    )
    answer = json.loads(out)
    names = {row["name"]: row for row in answer["operators"]}
    assert code == 0
    assert answer["simulated"] is True
    assert answer["totals"]["fallback"] == 0
    assert names["aten::addmm"]["kernel"] == "native"
    assert names["aten::addmm"]["calls"] == 1
    assert any("backward" in name for name in names)


def test_page_is_escaped_and_says_simulated(model, capsys, tmp_path):
    hostile = tmp_path / "<script>x.py"
    hostile.write_text(MODEL)
    page = tmp_path / "audit.html"
    code, out, _ = audit(capsys, f"{hostile}:with_inputs", "--html", str(page))
    text = page.read_text()
    assert code == 0
    assert "simulated" in out
    assert "aten::addmm" in out
    assert "&lt;script&gt;x.py" in text
    assert "<script>x" not in text


def test_functions_and_keywords(model, capsys):
    code, out, _ = audit(capsys, f"{model}:function")
    assert code == 0
    assert "aten::add" in out


def test_what_the_model_prints_is_not_in_the_answer(model, capsys):
    code, out, err = audit(capsys, f"{model}:loud", "--format", "json")
    assert code == 0
    assert json.loads(out)["ok"] is True
    assert "a line on standard output" in err


def test_a_fallback_is_found(model, capsys):
    code, out, _ = audit(capsys, f"{model}:falls_back", "--format", "json")
    answer = json.loads(out)
    assert code == 1
    assert answer["totals"]["fallback"] == 1
    assert answer["operators"][0]["name"] == "morphaudit::twice"
    assert answer["operators"][0]["kernel"] == "fallback"


def test_nothing_on_the_device_is_no_success(model, capsys):
    code, out, _ = audit(capsys, f"{model}:on_host")
    assert code == 1
    assert "No operator ran" in out


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("plain", [], "has no inputs"),
        ("plian", [], "It has plain"),
        ("constant", [], "no function 'constant'"),
        ("raises", [], "ValueError: no weights here"),
        ("leaves", [], "SystemExit: bye"),
        ("number", [], "returned a int"),
        ("plain", ["--input", "2,x"], "not understood"),
        ("plain", ["--input", "2,16:float33"], "not understood"),
        ("plain", ["--input", "2,16:qint8"], "no random input of dtype qint8"),
        ("plain", ["--input", "2,16:bits8"], "no random input of dtype bits8"),
        ("plain", ["--input", "2,16:float8_e5m2"], "The model failed"),
        ("plain", ["--input", "0,16"], "0 elements"),
        ("plain", ["--input", "999999,999999"], "elements"),
        ("plain", ["--input", "2,17"], "The model failed: RuntimeError"),
        ("on_host", ["--backward"], "nothing that can be differentiated"),
        ("with_inputs", ["--html", "/no/such/folder/x.html"], "cannot be written"),
        ("with_inputs", ["--device", "cuda:0"], "not 'cuda'"),
    ],
)
def test_bad_factories_and_inputs(model, capsys, name, arguments, words):
    code, _, err = audit(capsys, f"{model}:{name}", *arguments)
    assert code == 2
    assert words in err


def test_the_place_of_an_error_is_said(model, capsys):
    _, _, err = audit(capsys, f"{model}:raises")
    assert f"{model}, line 15" in err


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("model.py", "does not name a factory"),
        (":plain", "does not name a factory"),
        ("model.py:", "does not name a factory"),
        ("model.py:a.b()", "does not name a factory"),
        ("missing.py:plain", "There is no file"),
        (".:plain", "There is no file"),
        ("a\0b.py:plain", "There is no file"),
    ],
)
def test_bad_targets(target, words, capsys):
    code, _, err = audit(capsys, target)
    assert code == 2
    assert words in err


@pytest.mark.parametrize("content", [b"def plain(:\n", b"\xff\xfe\x00", b"import no_such_module_x"])
def test_files_that_are_no_good(tmp_path, capsys, content):
    pytest.importorskip("cuda_morph_sim")
    file = tmp_path / "bad.py"
    file.write_bytes(content)
    code, _, err = audit(capsys, f"{file}:plain")
    assert code == 2
    assert "cannot be imported" in err


def test_the_cpu_is_refused(model, capsys):
    assert main(["op", "audit", f"{model}:plain", "--backend", "cpu"]) == 2
    assert "nothing to tell apart" in capsys.readouterr().err


def report(*kernels):
    rows = tuple(AuditRow(name=kind, kernel=kind, calls=1, seconds=0.0) for kind in kernels)
    device = ChosenDevice(device="d", backend="b", display_name="D", simulated=False)
    return AuditReport(target="t", device=device, backward=False, rows=rows)


def test_any_fallback_is_a_finding():
    assert report("native", "composed").ok
    assert not report("native", "fallback").ok
    assert not report("native", "none").ok
    assert not report("composed").ok


def test_integers_of_inputs_are_small():
    drawn = model_factory._random_input((4, 50), "int64")
    assert int(drawn.min()) >= 0
    assert int(drawn.max()) <= 9
