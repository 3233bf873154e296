"""What cannot be run is refused with a message and exit code 2, before anything is activated."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

RUN = [sys.executable, "-m", "cuda_morph", "run"]


def run(*arguments, cwd, env=None, stdin=b""):
    done = subprocess.run(
        [*RUN, *map(str, arguments)],
        check=False,
        cwd=cwd,
        input=stdin,
        capture_output=True,
        env={**os.environ, **(env or {})},
        timeout=60,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def assert_refused(result, *words):
    code, out, err = result
    assert code == 2, err
    assert out == ""
    assert "Traceback" not in err
    for word in words:
        assert word in err


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing.py", None, ["CM-E11", "missing.py", "No such file"]),
        ("", None, ["Name a script"]),
        ("image.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", ["CM-E11", "image.png", "binary"]),
        ("latin.py", b"name = '\xe9t\xe9'\n", ["CM-E11", "encoding"]),
        ("unknown.py", b"# -*- coding: nonsense -*-\n", ["CM-E11", "encoding"]),
        ("nul.py", b"x = 1\0\n", ["CM-E11", "NUL"]),
        ("old.pyc", b"\0\0\r\n" + bytes(20), ["CM-E11", "another version of Python"]),
        (
            "bad.pyc",
            importlib.util.MAGIC_NUMBER + bytes(12) + b"\xff\xff",
            ["CM-E11", "bytecode is damaged"],
        ),
        ("notes.txt", b"Dear reader,\n", ["notes.txt", "SyntaxError", "CM-E11"]),
        ("bad.py", b"print('never')\ndef f(:\n", ["bad.py", "line 2", "SyntaxError", "CM-E11"]),
    ],
)
def test_unusable_script(tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    report = tmp_path / "report.json"
    assert_refused(run("--report", report, name, cwd=tmp_path), *words)
    assert not report.exists()


def test_syntax_error_is_shown_as_python_shows_it(tmp_path):
    (tmp_path / "bad.py").write_text("x = (1,\ny = 2\n")
    shown = subprocess.run(
        [sys.executable, "bad.py"], check=False, cwd=tmp_path, capture_output=True
    ).stderr.decode()
    _, _, err = run("bad.py", cwd=tmp_path)
    assert err.startswith(shown)
    assert_refused(run("-c", "x = (", cwd=tmp_path), "SyntaxError", "'-c'")
    assert_refused(run("-", cwd=tmp_path, stdin=b"x = ("), "SyntaxError", "'-'")


def test_directory_without_main(tmp_path):
    (tmp_path / "empty").mkdir()
    assert_refused(run("empty", cwd=tmp_path), "CM-E11", "__main__.py")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--backend", "nonsense"], ["CM-E01", "nonsense", "cpu"]),
        (["--backend", "cpuu"], ["CM-E01", "cpu"]),
        (["--backend", ""], ["CM-E06"]),
        (["--view", "nonsense"], ["nonsense", "native", "cuda"]),
        (["--fallback", "nonsense"], ["nonsense", "error"]),
        (["--tier", "T9"], ["T9", "T0"]),
        (["--report", "no/such/directory/report.json"], ["CM-E15", "report.json"]),
        (["--report", "."], ["CM-E15", "directory"]),
        (["--batch-size", "32"], ["--batch-size"]),
        (["--backend"], ["--backend"]),
        (["-m"], ["-m"]),
        (["-c"], ["-c"]),
        ([], ["Name a script"]),
        (["--"], ["Name a script"]),
    ],
)
def test_unusable_options(tmp_path, options, words):
    (tmp_path / "prog.py").write_text("print('started')")
    program = ["prog.py"] if len(options) == 2 else []
    assert_refused(run(*options, *program, cwd=tmp_path), *words)


@pytest.mark.parametrize(
    ("variable", "value", "code"),
    [
        ("CUDA_MORPH_BACKEND", "nonsense", "CM-E01"),
        ("CUDA_MORPH_VIEW", "nonsense", "CM-E06"),
        ("CUDA_MORPH_FALLBACK", "nonsense", "CM-E06"),
        ("CUDA_MORPH_TIER", "T9", "CM-E06"),
    ],
)
def test_unusable_variables(tmp_path, variable, value, code):
    (tmp_path / "prog.py").write_text("print('started')")
    assert_refused(run("prog.py", cwd=tmp_path, env={variable: value}), code, value)


def test_an_option_wins_over_an_unusable_variable(tmp_path):
    result = run("--view", "native", "-c", "print(1)", cwd=tmp_path, env={"CUDA_MORPH_VIEW": "x"})
    assert result == (0, "1\n", "")


def test_double_dash_ends_our_options(tmp_path):
    (tmp_path / "-odd.py").write_text("import sys; print(sys.argv)")
    assert run("--quiet", "--", "-odd.py", "--quiet", cwd=tmp_path)[:2] == (
        0,
        "['-odd.py', '--quiet']\n",
    )


def test_unwritable_report_of_an_existing_file(tmp_path):
    report = tmp_path / "report.json"
    report.write_text("kept")
    report.chmod(0o444)
    if os.access(report, os.W_OK):
        pytest.skip("this user may write to anything")
    assert_refused(run("--report", report, "-c", "print(1)", cwd=tmp_path), "CM-E15")
    assert report.read_text() == "kept"


def test_report_of_a_program_without_torch(tmp_path):
    program = "import os, sys; os.chdir('/'); sys.exit('fatal')"
    code, _, err = run("--report", "report.json", "-c", program, "a", cwd=tmp_path)
    report = json.loads((tmp_path / "report.json").read_text())
    assert (code, report["exit_code"]) == (1, 1)
    assert report["argv"] == ["-c", program, "a"]
    assert report["activation"] is None
    assert report["simulated"] is None
    assert report["usage"] == []
    assert report["wall_seconds"] > 0
    assert err.startswith("fatal\n")
    assert "torch was never imported" in err
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
    assert report == {
        **report,
        "error": None,
        "children_inherit": None,
        "kind": "code",
        "schema": 1,
    }


@pytest.mark.parametrize(
    ("program", "written"),
    [("1 / 0", 1), ("raise KeyboardInterrupt", 130), ("raise SystemExit(7)", 7)],
)
def test_report_and_quiet(tmp_path, program, written):
    report = tmp_path / "report.json"
    err = run("--quiet", "--report", report, "-c", program, cwd=tmp_path)[2]
    assert json.loads(report.read_text())["exit_code"] == written
    assert "cuda-morph" not in err


def test_a_forked_child_writes_no_report(tmp_path):
    report = tmp_path / "report.json"
    program = "import os, sys; sys.exit(0 if os.fork() == 0 else (os.wait(), 9)[1])"
    code, _, err = run("--report", report, "-c", program, cwd=tmp_path)
    assert code == 9
    assert err.count("run finished") == 1
    assert json.loads(report.read_text())["exit_code"] == 9
