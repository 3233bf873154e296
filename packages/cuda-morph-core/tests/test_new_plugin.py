"""``cuda-morph new-plugin``: what it writes works as it is, and hostile words never get into files."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_distributions import source

from cuda_morph.cli.group import cli
from cuda_morph.errors import MorphError, PluginError, SettingError
from cuda_morph.scaffolding.plugin_project import describe, plugin_files
from cuda_morph.scaffolding.project_files import _move_up, render, write_project

try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib

LONG = "abcdefghijklmnopqrstuvwxyzabcdef"
LONG_VENDOR = "Long & Sons (of a name that is sixty letters), Inc. + Co-KGaA"[:60]


def new_plugin(*arguments):
    result = CliRunner().invoke(cli, ["new-plugin", *map(str, arguments)], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


def tool(*arguments, cwd, env=None, codes=(0,)):
    done = subprocess.run(
        [sys.executable, "-m", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in codes, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_what_is_written(tmp_path):
    folder = tmp_path / "deep" / "plugin"
    result = new_plugin("my-chip2", "--into", folder, "--format", "json")
    assert result.return_value == 0
    answer = json.loads(result.output)
    files = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert files == set(answer["files"])
    assert files >= {
        "pyproject.toml",
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "noxfile.py",
        ".github/workflows/ci.yml",
        "tests/test_plugin.py",
        "src/cuda_morph_my_chip2/plugin.py",
        "src/cuda_morph_my_chip2/py.typed",
    }
    assert answer["blanks"] >= 15
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    assert project["project"]["name"] == "cuda-morph-my-chip2"
    assert project["project"]["entry-points"]["cuda_morph.plugins"] == {
        "my-chip2": "cuda_morph_my_chip2.plugin"
    }
    assert project["project"]["optional-dependencies"]["runtime"] == ["torch-my-chip"]
    assert "${{ matrix.session }}" in (folder / ".github/workflows/ci.yml").read_text()
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode)
    assert list(folder.parent.iterdir()) == [folder]


def test_nothing_is_claimed_and_no_fact_is_made_up():
    files = plugin_files(describe("mychip"))
    data = {n.rpartition("/")[2]: json.loads(t) for n, t in files.items() if n.endswith(".json")}
    assert data["claims.json"]["groups"] == data["error_codes.json"]["groups"] == []
    assert "PyTorch" in data["surface.json"]["source"]
    assert data["surface.json"]["version"] == "unknown"


@pytest.mark.parametrize(
    "name",
    ["", "9x", "Chip", "a b", "../x", "a/b", "a\nb", "-x", "x-", "a--b", "é", "x'", 'x"', "cuda",
     "cpu", "sim", "core", "xpu", "mps", "a" * 33, "$name", "{x}", "con\0"],
)  # fmt: skip
def test_names_that_are_refused(name, tmp_path):
    with pytest.raises(SettingError) as caught:
        new_plugin("--into", tmp_path / "new", "--", name)
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--device-type", "chip9"),  # PyTorch cannot read digits in a device type
        ("--device-type", "cuda"),
        ("--device-type", "privateuseone"),
        ("--device-type", "class"),
        ("--device-type", ""),
        ("--vendor", 'x", y="'),
        ("--vendor", "x\ny"),
        ("--vendor", "$vendor"),
        ("--vendor", "a\\"),
        ("--vendor", ""),
        ("--adapter-module", "torch"),
        ("--adapter-module", "torch.mychip"),
        ("--adapter-module", "a-b"),
        ("--adapter-module", "a..b"),
        ("--adapter-module", "import"),
        ("--adapter-module", "os; print()"),
        ("--collective", "nccl"),
        ("--collective", 'x"'),
    ],
)
def test_words_that_are_refused(option, value, tmp_path):
    with pytest.raises(SettingError):
        new_plugin("mychip", "--into", tmp_path / "new", option, value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_use_is_left_alone(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("full", "file", "link"):
        with pytest.raises(SettingError, match="nothing was written"):
            new_plugin("mychip", "--into", tmp_path / name)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "full", "link", "mine.txt"]
    (tmp_path / "empty").mkdir()
    assert new_plugin("mychip", "--into", tmp_path / "empty").return_value == 0
    with pytest.raises(SettingError):
        new_plugin("mychip", "--into", tmp_path / "empty")


def test_an_empty_folder_stays_what_it_is(tmp_path, monkeypatch):
    folder = tmp_path / "where I stand"
    folder.mkdir(mode=0o750)
    monkeypatch.chdir(folder)
    before = folder.stat().st_ino
    result = new_plugin("mychip", "--into", ".")
    assert "pip install -e . &&" in result.output
    assert (folder.stat().st_ino, stat.S_IMODE(folder.stat().st_mode)) == (before, 0o750)
    assert {path.name for path in folder.iterdir() if path.name.startswith(".")} == {
        ".github",
        ".gitignore",
    }
    assert (folder / "pyproject.toml").is_file()
    result = new_plugin("mychip", "--into", tmp_path / "with a space")
    assert f"pip install -e '{tmp_path / 'with a space'}'" in result.output


def test_all_or_nothing_in_an_empty_folder(tmp_path):
    folder = tmp_path / "new"
    folder.mkdir()
    with pytest.raises(MorphError, match="cannot be written"):
        write_project({"a": "1", "b/c": "2", "b": "3"}, folder)
    assert list(folder.iterdir()) == []
    source = tmp_path / "source"
    source.mkdir()
    (source / "a").write_text("1")
    (source / "b").write_text("2")
    (folder / "b").mkdir()
    with pytest.raises(IsADirectoryError):
        _move_up(source, folder)
    assert sorted(path.name for path in source.iterdir()) == ["a", "b"]
    assert [path.name for path in folder.iterdir()] == ["b"]


def test_all_or_nothing(tmp_path):
    # The second file cannot be made: its folder is the first file.
    with pytest.raises(MorphError, match="cannot be written") as caught:
        write_project({"a": "1", "a/b": "2"}, tmp_path / "new")
    assert caught.value.code == "CM-E15"
    assert list(tmp_path.iterdir()) == []


def test_broken_templates_are_named(tmp_path):
    with pytest.raises(PluginError, match="no templates"):
        render(tmp_path, {})
    (tmp_path / "x.py.tmpl").write_text("$unknown")
    with pytest.raises(PluginError, match=r"x\.py\.tmpl"):
        render(tmp_path, {})


def test_a_name_that_is_installed_is_warned_about(fake_site, tmp_path):
    fake_site.add("mychip", source("mychip"))
    result = new_plugin("mychip", "--into", tmp_path / "new")
    assert result.return_value == 0
    assert "warning: a plugin 'mychip' is installed here" in result.output


def test_errors_are_messages(tmp_path):
    command = [sys.executable, "-m", "cuda_morph", "new-plugin"]
    for arguments in (["Chip"], [], ["a", "b"], ["chip", "--into", "/proc/none/x"]):
        done = subprocess.run(
            [*command, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_names_give_no_orders_to_the_terminal(tmp_path):
    command = [sys.executable, "-m", "cuda_morph", "new-plugin", "chip", "--into"]
    (tmp_path / "a\x1b[2J").write_text("")
    done = subprocess.run(
        [*command, "a\x1b[2J"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    assert r"a\x1b[2J is there already" in done.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("mychip",),
        (LONG, "--device-type", LONG, "--adapter-module", LONG, "--collective", LONG,
         "--vendor", LONG_VENDOR),
    ],
    ids=["short", "long"],
)  # fmt: skip
def test_generated_code_is_clean(options, tmp_path):
    folder = tmp_path / "new"
    new_plugin(*options, "--into", folder)
    tool("ruff", "check", "--no-cache", ".", cwd=folder)
    tool("ruff", "format", "--no-cache", "--check", ".", cwd=folder)
    core = Path(__file__).parents[1] / "src"
    types = ["mypy", "--explicit-package-bases", "--cache-dir", tmp_path / "cache"]
    tool(*types, cwd=folder, env={"MYPYPATH": f"src:{core}"})
