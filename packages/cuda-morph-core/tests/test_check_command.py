"""``cuda-morph check`` as its users meet it: formats, settings, hostile trees, exit codes."""

import csv
import io
import json
import os
import socket
import subprocess
import sys

import pytest
import sarif_pydantic
from click.testing import CliRunner

from cuda_morph.cli.check import FORMATS
from cuda_morph.cli.group import cli
from cuda_morph.scan.rules import RULES

CODE = """import torch

x = torch.zeros(2, device="cuda")
torch.cuda.synchronize()
with torch.cuda.graph(None):
    pass
"""


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "project"
    root.mkdir()
    monkeypatch.chdir(root)
    (root / "train.py").write_text(CODE)
    (root / "clean.py").write_text("print('cuda')\n")
    return root


def check(*arguments):
    """Runs the command in this process; a MorphError comes out as it is."""
    return CliRunner().invoke(cli, ["check", *arguments], standalone_mode=False)


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "cuda_morph", "check", *arguments],
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=120,
        check=False,
        **options,
    )


def document(*arguments):
    result = check("--format", "json", *arguments)
    assert result.exception is None, result.output
    return json.loads(result.output)


def rules(*arguments):
    return [finding["rule"] for finding in document(*arguments)["findings"]]


def test_text_names_place_rule_and_verdict(tree):
    result = check("--target", "cpu")
    assert result.return_value == 1
    first = result.output.splitlines()[0]
    assert first.startswith("train.py:3:27: CM101 ")
    assert first.endswith("cuda [redirected]")
    assert "3 CUDA dependences in 2 files, 7 lines" in result.output


def test_nothing_found_is_clean(tree):
    result = check("clean.py")
    assert result.return_value == 0
    assert "No CUDA dependence found" in result.output


def test_select_and_ignore(tree):
    assert rules("--select", "CM2") == ["CM201", "CM208"]
    assert rules("--ignore", "cm201, CM1") == ["CM208"]
    assert rules("--select", "CM", "--ignore", "CM2") == ["CM101"]
    assert rules("--select", "CM201", "--ignore", "CM2") == ["CM201"]


def test_totals_add_up(tree):
    report = document("--target", "cpu")
    totals = report["totals"]
    assert totals["findings"] == len(report["findings"]) == 3
    assert sum(totals["verdicts"].values()) == sum(totals["efforts"].values()) == 3
    assert report["by_file"]["train.py"]["findings"] == 3
    covered = sum(
        f["verdict"] in {"works unchanged", "redirected", "emulated"} for f in report["findings"]
    )
    assert totals["covered_percent"] == pytest.approx(100 * covered / 3, abs=0.1)


def test_statistics_and_uncovered(tree):
    out = check("--statistics").output
    assert "CM201" in out
    assert "train.py" not in out
    for finding in document("--uncovered")["findings"]:
        assert finding["verdict"] in {"rewritable", "unsupported", "unknown"}


def test_csv_and_markdown_and_github(tree):
    rows = list(csv.DictReader(io.StringIO(check("--format", "csv").output)))
    assert [row["rule"] for row in rows] == ["CM101", "CM201", "CM208"]
    assert "| train.py | 3 |" in check("--format", "markdown").output
    lines = check("--format", "github").output.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("::") and "file=train.py,line=" in line for line in lines)


def test_csv_runs_no_formula(tree):
    (tree / "=1+1.py").write_text(CODE)
    rows = list(csv.DictReader(io.StringIO(check("--format", "csv").output)))
    assert {row["path"] for row in rows} == {"'=1+1.py", "train.py"}


def test_sarif_is_valid(tree):
    (tree / "odd name é.py").write_text(CODE)
    log = json.loads(check("--format", "sarif", "--target", "cpu").output)
    sarif_pydantic.Sarif.model_validate(log)
    assert log["version"] == "2.1.0"
    run = log["runs"][0]
    assert len(run["results"]) == 6
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        region = result["locations"][0]["physicalLocation"]["region"]
        assert 1 <= region["startLine"] <= region["endLine"]


def test_html_holds_everything_and_runs_nothing_from_the_sources(tree):
    (tree / "evil.py").write_text('device = "cuda"  # </script><script>alert(1)</script>\n')
    result = check("--format", "html", "--output", "report.html")
    assert result.return_value == 1
    page = (tree / "report.html").read_text()
    assert "</script><script>alert" not in page
    assert "train.py" in page
    assert "http" not in page.replace("http-equiv", "")


def test_baseline_hides_what_is_known_and_shows_what_is_new(tree):
    assert check("--write-baseline", "--baseline", "known.json").return_value == 0
    assert check("--baseline", "known.json").return_value == 0
    moved = "# one more line\n" + CODE + "torch.cuda.empty_cache()\n"
    (tree / "train.py").write_text(moved)
    report = document("--baseline", "known.json")
    assert [f["symbol"] for f in report["findings"]] == ["torch.cuda.empty_cache"]
    assert report["known"] == 3


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2, "findings": []}'])
def test_damaged_baseline_is_an_error(tree, text):
    (tree / "known.json").write_text(text)
    done = command("--baseline", "known.json")
    assert done.returncode == 2
    assert "CM-E15" in done.stderr
    assert "Traceback" not in done.stderr


def test_settings_of_the_project(tree):
    (tree / "pyproject.toml").write_text('[tool.cuda-morph.check]\nignore = ["CM1"]\n')
    assert rules() == ["CM201", "CM208"]
    assert rules("--isolated") == ["CM101", "CM201", "CM208"]
    assert rules("--ignore", "CM2") == ["CM101"]
    (tree / "pyproject.toml").write_text('[tool.cuda-morph.check]\nexclude = ["train.py"]\n')
    assert rules() == []


@pytest.mark.parametrize(
    "section", ["ignore = 3", 'ignroe = ["CM1"]', "target = []", "max-size = 0", "ignore = ["]
)
def test_wrong_settings_are_an_error(tree, section):
    (tree / "pyproject.toml").write_text(f"[tool.cuda-morph.check]\n{section}\n")
    done = command()
    assert done.returncode == 2
    assert "CM-E06" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["nowhere"],
        ["--select", "CM999"],
        ["--target", "nobody"],
        ["--output", "no/such/folder/report.txt"],
    ],
)
def test_wrong_arguments_are_an_error(tree, arguments):
    done = command(*arguments)
    assert done.returncode == 2
    assert done.stderr
    assert "Traceback" not in done.stderr
    assert not (tree / "no").exists()


def test_hostile_tree_is_survived(tree):
    (tree / "latin.py").write_bytes("# été\ndevice = 'cuda'\n".encode("latin-1"))
    (tree / "cookie.py").write_bytes(b"# -*- coding: nonsense -*-\ndevice = 'cuda'\n")
    (tree / "null.py").write_bytes(b"device = 'cuda'\0\n")
    (tree / "binary.sh").write_bytes(b"\x7fELF\0\0cuda" * 20)
    (tree / "deep.py").write_text("x = " + "(" * 5000 + "cuda" + ")" * 5000)
    (tree / "huge.py").write_bytes(b"# cuda\n" * 1_000_000)
    (tree / "empty.py").write_bytes(b"")
    (tree / "broken.ipynb").write_text('{"cells": 3}')
    (tree / "list.ipynb").write_text("[1, 2]")
    (tree / "folder.py").mkdir()
    os.mkfifo(tree / "pipe.py")
    server = socket.socket(socket.AF_UNIX)
    server.bind("socket.py")
    (tree / "loop").symlink_to(tree)
    (tree / "dangling.py").symlink_to(tree / "gone.py")
    (tree / "surrogate\udcff.py").write_text(CODE)
    done = command("--format", "json")
    server.close()
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    found = {}
    for finding in json.loads(done.stdout)["findings"]:
        found.setdefault(finding["path"], set()).add(finding["rule"])
    assert found["latin.py"] == {"CM903", "CM101"}
    assert "CM903" in found["cookie.py"]
    assert "CM901" in found["null.py"]
    assert "CM901" in found["deep.py"]
    assert found["huge.py"] == {"CM904"}
    assert found["broken.ipynb"] == found["list.ipynb"] == {"CM901"}
    assert found["pipe.py"] == found["socket.py"] == {"CM902"}
    assert len(found["train.py"]) == 3, "other files stopped the scan"
    assert not any(path.startswith("loop") for path in found)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file_is_a_finding(tree):
    (tree / "train.py").chmod(0)
    assert rules() == ["CM902"]


@pytest.mark.parametrize("style", FORMATS)
def test_every_format_survives_odd_names(tree, style):
    (tree / "sur\udcffrogate |,:%.py").write_text(CODE)
    done = command("--format", style)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr


def test_cache_follows_changes_and_damage(tree, tmp_path):
    assert len(rules()) == 3
    (cache,) = (tmp_path / "cache").rglob("*.json")
    assert len(rules()) == 3
    (tree / "train.py").write_text(CODE + "torch.cuda.empty_cache()\n")
    assert len(rules()) == 4
    (tree / "train.py").unlink()
    assert rules() == []
    cache.write_text("{broken")
    assert rules() == []


def test_results_of_the_cache_are_those_of_the_scan(tree):
    first = document()
    assert document() == first
    assert document("--no-cache") == first


def test_many_files_in_several_processes(tree):
    for number in range(150):
        (tree / f"m{number:03}.py").write_text(CODE)
    report = document("--jobs", "2", "--no-cache")
    assert len(report["findings"]) == 3 * 151
    assert [f["path"] for f in report["findings"]] == sorted(f["path"] for f in report["findings"])


def test_torch_is_not_imported(tree):
    program = (
        "import sys; from cuda_morph.cli.group import cli; "
        "cli(['check', '--target', 'cpu'], standalone_mode=False); "
        "sys.exit(bool({'torch', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_rules_are_complete():
    for rule in RULES.values():
        texts = (rule.summary, rule.why, rule.advice, rule.example)
        assert all(texts), rule.code
        assert rule.summary.endswith(".")
