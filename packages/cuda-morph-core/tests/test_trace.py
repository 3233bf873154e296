"""The trace: what it records, where it is written, and that nothing is wrapped without it."""

import json
import os
import re
import subprocess
import sys
import textwrap

import pytest

PROGRAM = """\
import threading
import torch
lib = torch.library.Library("demo", "DEF")
lib.define("twice(Tensor x) -> Tensor")
lib.impl("twice", lambda x: x * 2, "CPU")
x = torch.ones(3, 4, device="cuda", requires_grad=True)
y = torch.nn.Linear(4, 2).cuda()(x)
for _ in range(3):
    torch.cuda.synchronize()
y.relu().sum().backward()
torch.ops.demo.twice(x.detach())
torch.cuda.set_sync_debug_mode("warn")
torch.ones(2).cuda()
try:
    torch.cuda.caching_allocator_alloc(1)
except RuntimeError:
    pass
thread = threading.Thread(target=lambda: torch.zeros(2, device="cuda").sin())
thread.start()
thread.join()
torch.ones(5).cos()  # on the CPU
raise SystemExit(4)
"""


def run(tmp_path, source, *options, name="prog.py"):
    (tmp_path / name).write_text(textwrap.dedent(source))
    done = subprocess.run(
        [sys.executable, "-m", "cuda_morph", "run", *options, name],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=240,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    pytest.importorskip("cuda_morph_sim")
    folder = tmp_path_factory.mktemp("traced")
    code, _, err = run(folder, PROGRAM, "--backend", "sim", "--trace", "t.json")
    assert code == 4, err
    return json.loads((folder / "t.json").read_text()), err


def named(rows, name):
    return next((row for row in rows if row["name"] == name), None)


def lines_of(row):
    return [site["line"] for site in row["sites"]]


def test_document(traced):
    trace, _ = traced
    assert trace["version"] == 1
    assert trace["program"]["exit_code"] == 4
    assert trace["program"]["argv"] == ["prog.py"]
    assert trace["simulated"] is True
    assert trace["notes"][0].startswith("Simulated: ")
    assert trace["device_strings"] is None or trace["device_strings"] >= 3


def test_calls_with_time_and_place(traced):
    row = named(traced[0]["cuda_calls"], "torch.cuda.synchronize")
    assert (row["treatment"], row["calls"], row["raised"]) == ("redirect", 3, 0)
    assert row["seconds"] > 0
    assert lines_of(row) == [9]
    assert row["sites"][0]["file"].endswith("prog.py")


@pytest.mark.parametrize(
    ("name", "treatment", "line", "raised"),
    [
        ("torch.cuda.caching_allocator_alloc", "refuse", 15, 1),
        ("torch.cuda.set_sync_debug_mode", "stub", 12, 0),
        ("torch.Tensor.cuda", "redirect", 13, 0),
        ("torch.nn.Module.cuda", "redirect", 7, 0),
    ],
)
def test_treatments(traced, name, treatment, line, raised):
    row = named(traced[0]["cuda_calls"], name)
    assert (row["treatment"], row["calls"], row["raised"]) == (treatment, 1, raised)
    assert lines_of(row) == [line]


def test_own_kernel_fallback_and_composed(traced):
    operators = traced[0]["operators"]
    kernels = {row["name"]: row["kernel"] for row in operators}
    assert kernels["aten::addmm"] == "own"
    assert kernels["demo::twice"] == "fallback"
    assert kernels["aten::ones"] == "composed"
    assert all(row["seconds"] > 0 for row in operators)
    assert lines_of(named(operators, "demo::twice")) == [11]


def test_parts_of_composed_operators_are_seen(traced):
    fill = named(traced[0]["operators"], "aten::fill_.Scalar")
    assert fill["kernel"] == "own"
    assert 6 in lines_of(fill)


def test_backward_pass_is_placed_at_its_call(traced):
    assert lines_of(named(traced[0]["operators"], "aten::threshold_backward")) == [10]


def test_threads_are_seen_and_the_cpu_is_not(traced):
    operators = traced[0]["operators"]
    assert lines_of(named(operators, "aten::sin")) == [18]
    assert named(operators, "aten::cos") is None


def test_table_on_standard_error(traced):
    err = traced[1]
    row = next(line.split() for line in err.splitlines() if "demo::twice" in line)
    assert row[1:3] == ["fallback", "1"]
    assert row[-1].endswith("prog.py:11")


HOSTILE = "<img src=x onerror=alert(1)>&.py"


def test_page_of_a_crashing_program_with_a_hostile_name(tmp_path):
    source = """
        import torch
        exec(compile("torch.cuda.synchronize()", '"><script>alert(2)</script>', "exec"))
        torch.ones(2, device="cuda") + 1
        raise ValueError("the end")
    """
    code, _, err = run(
        tmp_path, source, "--backend", "cpu", "--quiet", "--trace", "t.html", name=HOSTILE
    )
    assert code == 1
    assert err.rstrip().endswith("ValueError: the end")
    page = (tmp_path / "t.html").read_text()
    assert "torch.cuda.synchronize" in page
    assert "aten::add.Tensor" in page
    assert "<img" not in page
    assert page.count("<script>") == 1
    assert "alert(1)" in page  # escaped, not left out
    assert "alert(2)" in page
    assert not re.search(r"""(src|href)=["']?\w""", page.replace("src=x", ""))
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("target", ["missing/t.html", "t.txt", "t"])
def test_unwritable_target_is_refused_before_the_run(tmp_path, target):
    code, out, err = run(tmp_path, "print('started')", "--trace", target)
    assert (code, out) == (2, "")
    assert "CM-E" in err
    assert "Traceback" not in err


def test_program_without_torch(tmp_path):
    code, _, _ = run(tmp_path, "pass", "--trace", "t.json")
    assert code == 0
    trace = json.loads((tmp_path / "t.json").read_text())
    assert trace["cuda_calls"] == trace["operators"] == []
    assert "never imported" in trace["notes"][0]


def test_without_trace_nothing_is_wrapped(tmp_path):
    source = """
        import sys, threading, types
        before = threading.Thread._bootstrap_inner
        import torch
        assert torch.cuda.synchronize() is None
        modules = [m for n, m in sys.modules.items() if n.startswith("torch.cuda")]
        values = [v for m in [*modules, torch._C] for v in vars(m).values()]
        wrapped = [v for v in values if getattr(v, "__qualname__", "").endswith(("recorded", "counted"))]
        assert not wrapped, wrapped
        assert not [name for name in sys.modules if name.startswith("cuda_morph.trace")]
        assert threading.Thread._bootstrap_inner is before
        assert torch.nn.Module.cuda.__code__.co_names == ("_apply",)
        assert torch._C._len_torch_dispatch_stack() == 0
        assert not getattr(torch.Tensor.cuda, "__module__", "").startswith("cuda_morph.trace")
    """
    code, _, err = run(tmp_path, source, "--backend", "cpu")
    assert code == 0, err


def test_activate_with_trace_and_its_end(tmp_path):
    source = """
        import threading
        import torch, cuda_morph
        def state():
            return (
                threading.Thread._bootstrap_inner, torch.nn.Module.cuda.__code__,
                torch.jit.trace_module.__code__, vars(torch.Tensor).get("cuda"),
                torch.cuda.synchronize.__code__, torch._C._len_torch_dispatch_stack(),
            )
        before = state()
        activation = cuda_morph.activate("cpu", trace=True)
        assert state() != before
        assert not torch.cuda.is_available()  # the native view stays what it is
        assert torch.amp.GradScaler("cuda").is_enabled()
        torch.jit.trace(lambda a: a * 2, torch.ones(3, device="cuda"))
        torch.cuda.synchronize()
        usage = {name: calls for name, _, calls in activation.usage()}
        assert usage["torch.cuda.synchronize"] == 1
        cuda_morph.deactivate()
        assert state() == before
        report = activation.trace()
        assert [row.calls for row in report.calls if row.name == "torch.cuda.synchronize"] == [1]
        assert "No accelerator took part" in report.as_html()
        counted = cuda_morph.activate("cpu", trace="counts")
        torch.cuda.synchronize()
        assert counted.trace() is None
        assert ("torch.cuda.synchronize", "redirect", 1) in counted.usage()
        assert torch._C._len_torch_dispatch_stack() == 0
    """
    (tmp_path / "prog.py").write_text(textwrap.dedent(source))
    done = subprocess.run(
        [sys.executable, "prog.py"],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
