from __future__ import annotations

import copy
import json
import subprocess
import sys

import pytest
from made_certificate import make, sealed

from cuda_morph_conformance.compare import compare
from cuda_morph_conformance.matrix import read_folder, render_html, render_markdown
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.vocabulary import Level, Seen

CHECK = next(check for check in CHECKS.values() if check.level is Level.RUNS)


@pytest.fixture(scope="module")
def good():
    return make()


@pytest.fixture(scope="module")
def bad():
    return make(seen={CHECK.id: Seen.FAILED})


def write(folder, certificate):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "certificate.json").write_text(json.dumps(certificate))
    return str(folder)


def cli(*arguments):
    command = [sys.executable, "-m", "cuda_morph_conformance", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_regressions_come_first_and_fail(good, bad, tmp_path):
    old, new = write(tmp_path / "old", good), write(tmp_path / "new", bad)
    done = cli("diff", old, new)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "regressions:"
    assert "level:" in lines[1]
    assert f"{CHECK.id}[native]: passed -> failed (seen" in done.stdout
    back = cli("diff", new, old)
    assert back.returncode == 0
    assert back.stdout.startswith("improvements:")
    assert cli("diff", old, old).stdout.strip() == "no difference"


def test_checks_that_came_and_went(good):
    fewer = copy.deepcopy(good)
    gone = fewer["results"].pop()
    assert any("is gone: passed" in line for line in compare(good, fewer).regressions)
    assert any("is new: passed" in line for line in compare(fewer, good).other)
    gone["outcome"] = "failed"
    grown = {**fewer, "results": [*fewer["results"], gone]}
    assert any("is new: failed" in line for line in compare(fewer, grown).regressions)


def test_what_is_no_certificate_is_said(good, tmp_path):
    old, new = write(tmp_path / "old", good), write(tmp_path / "new", {"format": 1})
    done = cli("diff", old, new)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def other_evidence(certificate):
    facts = {"devices": ("A",), "details": {"driver": "1", "sdk": "2"}, "simulated": False}
    return make(facts={"plugin": "other", **facts})


def test_the_matrix_never_mixes_evidence(good, tmp_path):
    write(tmp_path / "a", good)
    write(tmp_path / "b" / "c", other_evidence(good))
    text = render_markdown(read_folder(tmp_path))
    hard, simulated = text.index("## On hardware"), text.index("## On a simulated device")
    assert text.index("| other |") < simulated < text.index("| mychip |")
    assert hard < simulated
    page = render_html(read_folder(tmp_path))
    assert page.index("<td>other</td>") < page.index("On a simulated device")


def test_the_matrix_refuses_what_does_not_add_up(good, tmp_path):
    write(tmp_path / "a", sealed({**good, "evidence": "hardware"}))
    done = cli("matrix", str(tmp_path))
    assert done.returncode == 2
    assert "does not add up" in done.stderr
    assert cli("matrix", str(tmp_path / "none")).returncode == 2


def test_an_empty_matrix_says_so(tmp_path):
    assert "No certificate" in render_markdown(read_folder(tmp_path))
    assert "No certificate" in render_html(read_folder(tmp_path))
