from __future__ import annotations

import json
import re
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


def test_a_clean_run_exits_zero():
    done = cli("run", "--plugin", "cpu", "--level", "loads", "--format", "json")
    assert done.returncode == 0, done.stdout
    [report] = json.loads(done.stdout)
    assert report["level"] == "loads"
    assert report["counts"]["passed"] == len(report["results"])
    assert "10/" not in done.stdout
    assert re.search(r"^\d+/\d+ \(cpu CM-LOAD-\d{3}\)$", done.stderr, re.MULTILINE)


def test_a_failure_shows_why_and_fix_and_exits_one(install):
    install(GOOD.replace('name="mychip"', 'name="other"'))
    done = cli("run", "--plugin", "mychip", "--level", "loads", "-k", "backend")
    assert done.returncode == 1
    assert "failed   CM-LOAD-020" in done.stdout
    assert "why: Backend.name is 'other'" in done.stdout
    assert "fix: use one name" in done.stdout
    assert "level reached: none" in done.stdout
    assert "passed   CM-LOAD-022" not in done.stdout


def test_verbose_lists_what_passed():
    done = cli("run", "--plugin", "cpu", "--check", "CM-LOAD-001", "-v")
    assert "passed   CM-LOAD-001" in done.stdout


def test_fail_fast_stops_and_what_did_not_run_is_missing(install):
    install(GOOD.replace('name="mychip"', 'name="other"'))
    done = cli("run", "--plugin", "mychip", "--level", "loads", "-x", "--format", "json")
    [report] = json.loads(done.stdout)
    assert report["counts"]["failed"] >= 1
    assert any("was stopped" in row["message"] for row in report["results"])


@pytest.mark.parametrize(
    ("options", "mention"),
    [
        (("--check", "CM-DEV-999"), "CM-DEV-999"),
        (("-k", "no such words"), "No check is left"),
        (("--out", "x"), "--certify"),
        (("--certify",), "--out"),
        (("--certify", "--out", "x", "--level", "loads"), "--level"),
        (("--certify", "--out", "x", "-k", ""), "-k"),
        (("--certify", "--out", "x", "--check", "CM-LOAD-001"), "--check"),
        (("--certify", "--out", "x", "--view", "cuda"), "--view"),
        (("--certify", "--out", "x", "-x"), "--fail-fast"),
        (("--certify", "--out", "x", "--time-limit", "60"), "--time-limit"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, mention, tmp_path):
    done = cli("run", "--plugin", "cpu", *options)
    assert done.returncode == 2
    assert mention in done.stderr
    assert "Traceback" not in done.stderr


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
