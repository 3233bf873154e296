from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

GOOD = Path(__file__).with_name("good_plugin.py").read_text()


def cli(*arguments):
    command = [sys.executable, "-m", "cuda_morph_conformance", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_list_prints_sentences():
    done = cli("list")
    assert done.returncode == 0
    assert "CM-LOAD-001" in done.stdout
    assert "MUST" in done.stdout


def test_list_as_json_has_the_fix():
    rows = json.loads(cli("list", "--format", "json", "--level", "loads").stdout)
    assert len(rows) >= 12
    assert all(row["fix"] and row["level"] == "loads" for row in rows)


def test_an_empty_level_is_said_to_be_empty():
    assert "No check of the level accelerates" in cli("list", "--level", "accelerates").stdout


@pytest.fixture(scope="module")
def cpu_report():
    return cli("run", "--plugin", "cpu", "--format", "json")


def test_a_clean_run_exits_zero(cpu_report):
    assert cpu_report.returncode == 0, cpu_report.stdout
    [report] = json.loads(cpu_report.stdout)
    assert report["level"] == "loads"
    assert report["counts"]["passed"] == len(report["checks"])


def test_a_failure_shows_why_and_fix_and_exits_one(install):
    install(GOOD.replace('name="mychip"', 'name="other"'))
    done = cli("run", "--plugin", "mychip")
    assert done.returncode == 1
    assert "failed   CM-LOAD-020" in done.stdout
    assert "why: Backend.name is 'other'" in done.stdout
    assert "fix: use one name" in done.stdout
    assert "level reached: none" in done.stdout


def test_an_unknown_plugin_exits_two_and_lists_the_known_ones():
    done = cli("run", "--plugin", "nosuch")
    assert done.returncode == 2
    assert "CM-E01" in done.stderr
    assert "cpu" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [("run",), ("run", "--plugin", "cpu", "--all")])
def test_run_wants_names_or_all(arguments):
    done = cli(*arguments)
    assert done.returncode == 2
    assert "--all" in done.stderr
