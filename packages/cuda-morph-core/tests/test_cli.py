"""The command line itself: start-up, formats, exit codes, and life without torch or click."""

import importlib.util
import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

import cuda_morph

COMMAND = [sys.executable, "-m", "cuda_morph"]


def cli(*arguments, command=COMMAND, env=None, cwd=None):
    done = subprocess.run(
        [*command, *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


def on_terminal(*arguments, env=None):
    """Runs a command on a pseudo-terminal and returns what a person would see."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", **(env or {})},
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(leader)
    return process.wait(timeout=60), shown.decode()


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Runs an interpreter that has cuda-morph's dependencies and nothing else."""
    folder = tmp_path_factory.mktemp("bare")

    def link(*names):
        for name in names:
            origin = Path(importlib.util.find_spec(name).origin)
            (folder / name).symlink_to(origin.parent)

    link("packaging")
    (folder / "cuda_morph").symlink_to(Path(cuda_morph.__file__).parent)
    env = {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-S", "-m", "cuda_morph"]

    def run(*arguments):
        return cli(*arguments, command=command, env=env, cwd=folder)

    run.link = link
    return run


def test_without_click_and_without_torch(bare):
    code, out, err = bare("--help")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert 'pip install "cuda-morph-core[cli]"' in err
    bare.link("click")
    code, out, _ = bare("--help")
    assert code == 0
    assert "plugins" in out
    code, out, err = bare("info", "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["torch"] is None
    code, out, err = bare("info")
    assert (code, err) == (0, "")
    assert "not installed" in out
    code, out, err = bare("run", "-c", "print(1)")
    assert (code, out, err) == (0, "1\n", "")
    code, out, err = bare("run", "-c", "import torch")
    assert (code, out) == (1, "")
    assert err.endswith("ModuleNotFoundError: No module named 'torch'\n")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["info"], ["run", "-c", "0"]])
def test_start_up_imports_no_torch_and_is_fast(arguments):
    code, _, err = cli(*arguments, command=[sys.executable, "-X", "importtime", "-m", "cuda_morph"])
    imported = {line.rpartition("|")[2].strip() for line in err.splitlines()}
    assert code == 0
    assert "cuda_morph.cli.entry" in imported
    assert not imported & {"torch", "rich", "numpy"}
    # Start-up waits for nothing, so processor time is what it takes on an idle machine; time on the
    # clock would measure the other tests, too.
    # A machine busy with other tests is slower still: the best of several tries counts.
    assert any(processor_seconds(arguments) < 0.15 for _ in range(15))


def processor_seconds(arguments):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {**os.environ, "CUDA_MORPH_PLUGINS": "cpu"}  # others have start-up times of their own
    subprocess.run([*COMMAND, *arguments], check=True, capture_output=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_installed_command_is_the_module():
    installed = Path(sys.executable).parent / "cuda-morph"
    if not installed.exists():
        pytest.skip("not installed here")
    for arguments in (["--help"], ["--version"], ["plugins"], ["nonsense"], ["run", "-c", "1/0"]):
        found, expected = cli(*arguments, command=[str(installed)]), cli(*arguments)
        assert (found[0], untimed(found[1]), found[2]) == (
            expected[0],
            untimed(expected[1]),
            expected[2],
        )


def untimed(text):
    """Returns text without load times, and the width of columns that depends on them."""
    return re.sub(r" +", " ", re.sub(r"\d+ ms", "? ms", text))


def test_version():
    assert cli("--version") == (0, f"cuda-morph {version('cuda-morph-core')}\n", "")


def test_usage_errors():
    for arguments in (["nonsense"], ["info", "--nonsense"], ["info", "--format", "xml"]):
        code, out, err = cli(*arguments)
        assert (code, out) == (2, "")
        assert "Traceback" not in err


def test_info():
    env = {"CUDA_MORPH_VIEW": "cuda"}
    code, out, err = cli("info", "--format", "json", env=env)
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert found["version"] == version("cuda-morph-core")
    assert found["torch"] == version("torch")
    assert found["active"] is False
    assert found["settings"]["CUDA_MORPH_VIEW"] == "cuda"
    assert {row["name"]: row["status"] for row in found["plugins"]}["cpu"] == "ready"
    code, out, _ = cli("info", env=env)
    assert code == 0
    assert found["torch"] in out
    assert "CUDA_MORPH_VIEW" in out
    assert "\x1b" not in out


def test_plugins_show_broken_ones(tmp_path):
    info = tmp_path / "cuda_morph_oops-1.2.dist-info"
    info.mkdir()
    (tmp_path / "oops_plugin.py").write_text("raise OSError('libmissing.so not found')")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cuda-morph-oops\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[cuda_morph.plugins]\noops = oops_plugin\n")
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    env = {"PYTHONPATH": path}
    code, out, err = cli("plugins", env=env)
    row = next(line for line in out.splitlines() if line.startswith("oops"))
    assert code == 1
    assert "Traceback" not in err
    for word in ("broken", "cuda-morph-oops 1.2", "OSError", "libmissing.so"):
        assert word in row
    cpu = next(line for line in out.splitlines() if line.startswith("cpu"))
    assert cpu.split()[:6] == [
        "cpu",
        "ready",
        "cuda-morph-core",
        version("cuda-morph-core"),
        "1.0",
        "1",
    ]
    code, out, _ = cli("plugins", "--format", "json", env=env)
    rows = {row["name"]: row for row in json.loads(out)["plugins"]}
    assert code == 1
    assert rows["oops"]["status"] == "broken"
    assert rows["cpu"]["device_count"] == 1
    code, out, err = cli("plugins", env={**env, "CUDA_MORPH_BLOCK": "oops"})
    assert (code, "blocked" in out) == (0, True), err
    code, out, err = cli("plugins", env={**env, "CUDA_MORPH_STRICT": "1"})
    assert (code, out) == (2, "")
    assert "CM-E09" in err
    code, _, err = cli("run", "--backend", "oops", "-c", "print('started')", env=env)
    assert (code, "libmissing.so" in err, "Traceback" in err) == (2, True, False)


def test_plugins_show_notes_and_how_long_loading_took(tmp_path):
    info = tmp_path / "cuda_morph_slow-1.0.dist-info"
    info.mkdir()
    (tmp_path / "slow_plugin.py").write_text(
        "import time; time.sleep(1.1)\n"
        "from cuda_morph.hookspecs import hookimpl\n"
        "from cuda_morph.records import Backend, Detection\n"
        "@hookimpl\n"
        "def cuda_morph_backend():\n"
        "    return Backend(name='slow', display_name='Slow', vendor='S', device_type='slow',\n"
        "                   adapter_module=None)\n"
        "@hookimpl\n"
        "def cuda_morph_detect():\n"
        "    return Detection(available=False, reason='asleep')\n"
    )
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cuda-morph-slow\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[cuda_morph.plugins]\nslow = slow_plugin\n")
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    env = {"PYTHONPATH": path, "CUDA_MORPH_PLUGINS": "slow"}
    code, out, _ = cli("plugins", env=env)
    row = next(line for line in out.splitlines() if line.startswith("slow"))
    assert code == 0
    assert re.search(r"11\d\d ms|1[2-9]\d\d ms", row), row
    assert "asleep; took 1." in row
    found = json.loads(cli("plugins", "--format", "json", env=env)[1])["plugins"]
    (listed,) = [entry for entry in found if entry["name"] == "slow"]
    assert listed["load_seconds"] > 1.1
    assert "took 1." in listed["notes"][0]


def test_only_working_plugins_is_clean():
    code, out, err = cli("plugins", env={"CUDA_MORPH_PLUGINS": "cpu"})
    assert (code, err) == (0, "")
    assert "ready" in out


def test_terminal_output():
    code, shown = on_terminal("plugins", env={"CUDA_MORPH_PLUGINS": "cpu"})
    assert (code, "\x1b[" in shown) == (0, True)
    code, shown = on_terminal("plugins", env={"CUDA_MORPH_PLUGINS": "cpu", "NO_COLOR": "1"})
    assert (code, "\x1b[" in shown) == (0, False)
    assert "cpu" in shown
    code, shown = on_terminal("run", "-c", "print('hello')", env={"NO_COLOR": "1"})
    assert code == 0
    assert shown.splitlines()[0] == "hello"
    assert "torch was never imported" in shown
    assert "\x1b[" not in shown
    assert on_terminal("run", "--quiet", "-c", "print('hello')") == (0, "hello\r\n")


def test_closed_pipe_is_no_traceback():
    line = f"{sys.executable} -m cuda_morph info --format json | head -c 1"
    done = subprocess.run(line, check=False, shell=True, capture_output=True, text=True)
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/proc/self/syscall").exists(), reason="needs Linux's /proc")
def test_an_interrupt_ends_a_command_without_a_traceback():
    process = subprocess.Popen(
        [*COMMAND, "error"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Python's own start cannot be told to be quiet: wait until the command reads standard input.
    reads = Path(f"/proc/{process.pid}/syscall")
    deadline = time.monotonic() + 60
    while reads.read_text().split()[:2] != ["0", "0x0"] and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "\n")
