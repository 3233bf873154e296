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
from cuda_morph.scaffolding.project_files import render, write_project

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


CLAIMS = {
    "never": [
        "stream.external",
        "event.ipc",
        "device.utilization",
        "memory.pool",
        "ext.symbol_map",
    ],
    "not_yet": ["memory.fraction", "memory.snapshot", "ext.load", "ext.build"],
}
HELD_BACK = ("CM-DEV-015", "CM-DEV-016", "CM-MEM-023", "CM-MEM-024", "CM-MEM-025", "CM-STRM-012",
             "CM-EVT-009", "CM-ERR-030", "CM-ERR-032", "CM-EXT-020", "CM-EXT-021")  # fmt: skip
"""The checks up to the level "runs" that fail before any blank is filled."""
RUN = ("cuda_morph_conformance", "run", "--plugin", "mychip")


def install(folder, place):
    """Builds the wheel and unpacks it, with nothing from outside; returns the environment."""
    wheels, site = place / "wheels", place / "site"
    pip = ["pip", "--disable-pip-version-check", "--no-cache-dir"]
    offline = ["--no-deps", "--no-index"]
    tool(*pip, "wheel", "-q", "--no-build-isolation", *offline, "-w", wheels, ".", cwd=folder)
    [wheel] = wheels.iterdir()
    tool(*pip, "install", "-q", *offline, "--target", site, wheel, cwd=folder)
    return {"PYTHONPATH": str(site)}


def fill_blanks(folder):
    """Does what the author of the plugin would: variables, claims and an error code."""
    package = folder / "src" / "cuda_morph_mychip"
    identity = package / "identity.py"
    blank = "visible_devices_env=None,"
    text = identity.read_text()
    assert blank in text
    identity.write_text(text.replace(blank, 'visible_devices_env="MYCHIP_VISIBLE",'))
    groups = [
        {"common": {"support": support}, "rows": [{"id": name} for name in names]}
        for support, names in CLAIMS.items()
    ]
    (package / "data" / "claims.json").write_text(json.dumps({"groups": groups}))
    code = {"code": "2", "name": "MC_OOM", "meaning": "Memory is full.", "source": "mychip.h"}
    rows = [{**code, "semantic": "out_of_memory"}]
    (package / "data" / "error_codes.json").write_text(json.dumps({"groups": [{"rows": rows}]}))


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_new_plugin_loads_at_once_and_runs_when_its_blanks_are_filled(tmp_path):
    folder = tmp_path / "new"
    new_plugin("mychip", "--vendor", "MyChip Inc.", "--collective", "mcl", "--into", folder)
    env = install(folder, tmp_path / "before")
    rows = tool("cuda_morph", "plugins", cwd=tmp_path, env=env)
    [row] = [line for line in rows.splitlines() if line.startswith("mychip ")]
    assert "unavailable" in row
    assert "torch_mychip is not installed" in row
    assert "4 passed" in tool("pytest", "-q", "-p", "no:cacheprovider", cwd=folder, env=env)
    text = tool(*RUN, "--level", "loads", cwd=tmp_path, env=env)
    assert "0 failed, 0 missing - level reached: loads" in text
    assert "as sim:mychip" in text
    fill_blanks(folder)
    env = install(folder, tmp_path / "after")
    checks = [word for name in HELD_BACK for word in ("--check", name)]
    assert "0 failed, 0 missing" in tool(*RUN, *checks, cwd=tmp_path, env=env)
