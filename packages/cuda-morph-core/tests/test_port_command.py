"""``cuda-morph port``: what it writes, takes back, prints and refuses."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from cuda_morph.port.activation_lines import activate_source

HEAD = "import torch\n"


def port(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "cuda_morph", "port", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )


@pytest.fixture
def project(tmp_path):
    (tmp_path / "train.py").write_text(HEAD + "x = torch.zeros(2).cuda()\n")
    (tmp_path / "clean.py").write_text("print('cuda')\n")
    (tmp_path / "broken.py").write_text("def f(:\n  'cuda'\n")
    (tmp_path / "latin.py").write_bytes("import torch\nx.cuda() # é\n".encode("latin-1"))
    (tmp_path / "train.py").chmod(0o755)
    return tmp_path


def content(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.py")}


def test_diff_changes_nothing(project):
    before = content(project)
    done = port(cwd=project)
    assert done.returncode == 1
    assert "+x = torch.zeros(2).to(DEVICE_TYPE)" in done.stdout
    assert "broken.py: cannot be parsed" in done.stderr
    assert "latin.py: is not UTF-8" in done.stderr
    assert "Traceback" not in done.stderr
    assert content(project) == before
    assert not (project / ".cuda-morph-port").exists()


def test_write_and_undo(project):
    before = content(project)
    assert port("train.py", "--write", cwd=project).returncode == 0
    assert content(project)["train.py"] != before["train.py"]
    assert (project / "train.py").stat().st_mode & 0o777 == 0o755
    assert port("train.py", cwd=project).stdout == ""
    assert port("--undo", cwd=project).returncode == 0
    assert content(project) == before
    assert not (project / ".cuda-morph-port").exists()


def test_an_attribute_of_the_project_is_not_asked_for_its_device(project):
    (project / "net.py").write_text(
        f"{HEAD}class A:\n    def __init__(self):\n        self.is_cuda = True\n"
    )
    (project / "use.py").write_text(
        f"{HEAD}if net.is_cuda == True:\n    x = torch.zeros(2).cuda()\n"
    )
    done = port("use.py", "net.py", cwd=project)
    assert "+if" not in done.stdout
    assert "1 of them can be rewritten with --unsafe" in done.stderr
    assert "+if (net.device.type == DEVICE_TYPE) == True" in port("use.py", cwd=project).stdout


def test_names_stay_where_tests_replace_all_of_torch_cuda(project):
    (project / "lib").mkdir()
    use = f"{HEAD}ok = torch.cuda.is_available()\nx = torch.zeros(2).cuda()\n"
    for name in ("memory.py", "other.py"):
        (project / "lib" / name).write_text(use)
    test = (
        f'{HEAD}with patch("lib.memory.torch.cuda") as m:\n    assert torch.cuda.is_available()\n'
    )
    (project / "test_memory.py").write_text(test)
    port("lib", "test_memory.py", "--write", cwd=project)
    assert (
        "ok = torch.cuda.is_available()\nx = torch.zeros(2).to("
        in (project / "lib/memory.py").read_text()
    )
    assert "ok = torch.accelerator.is_available()" in (project / "lib/other.py").read_text()
    assert (project / "test_memory.py").read_text() == test


def test_byte_order_mark_and_line_ends_stay(project):
    (project / "windows.py").write_bytes(
        b"\xef\xbb\xbfimport torch\r\nx = torch.zeros(2).cuda()\r\n"
    )
    assert port("windows.py", "--write", cwd=project).returncode == 0
    after = (project / "windows.py").read_bytes()
    assert after.startswith(b"\xef\xbb\xbfimport torch\r\n")
    assert after.count(b"\n") == after.count(b"\r\n") == 5


def test_undo_keeps_what_was_changed_since(project):
    port("train.py", "--write", cwd=project)
    (project / "train.py").write_text("mine")
    done = port("--undo", cwd=project)
    assert done.returncode == 2
    assert "changed since the port" in done.stderr
    assert (project / "train.py").read_text() == "mine"


def test_undo_without_a_port_or_with_a_damaged_one(project):
    done = port("--undo", cwd=project)
    assert (done.returncode, "CM-E15" in done.stderr) == (2, True)
    port("train.py", "--write", cwd=project)
    (manifest,) = project.glob(".cuda-morph-port/*/manifest.json")
    manifest.write_text("{")
    done = port("--undo", cwd=project)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)


def test_a_file_that_cannot_be_written_leaves_all_as_they_were(project):
    from cuda_morph.errors import MorphError
    from cuda_morph.port import journal
    from cuda_morph.port.project import plan

    (project / "z.py").write_text("import torch\nx.cuda()\n")
    plans = plan([project / "train.py", project / "z.py"])
    (project / "z.py").write_text("changed meanwhile")
    before = content(project)
    with pytest.raises(MorphError, match="every file is as it was"):
        journal.write(plans, project)
    assert content(project) == before


def test_activation_lines(project):
    done = port("train.py", "--activate", "--write", cwd=project)
    assert done.returncode == 0, done.stderr
    text = (project / "train.py").read_text()
    assert text.startswith('import cuda_morph\ncuda_morph.activate(view="cuda")\nimport torch\n')
    assert activate_source(text) == text


def test_activation_lines_come_after_future_imports():
    source = textwrap.dedent('''\
        """Text."""
        from __future__ import annotations
        import torch
        torch.cuda.synchronize()
        ''')
    after = activate_source(source)
    compile(after, "x", "exec")
    assert (
        after.index("__future__") < after.index("import cuda_morph") < after.index("import torch")
    )


@pytest.mark.parametrize("arguments", [["nowhere"], ["--undo", "--write"], ["--format", "xml"]])
def test_wrong_arguments(project, arguments):
    done = port(*arguments, cwd=project)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_json(project):
    done = port("--format", "json", cwd=project)
    files = {Path(item["path"]).name: item for item in json.loads(done.stdout)["files"]}
    assert files["train.py"]["changed"]
    assert files["broken.py"]["problem"]
    assert "clean.py" not in files
