"""Configurations and plugins that try to shrink or change the checklist change nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.integrity import describe_suite
from cuda_morph_conformance.runner import run_checks
from cuda_morph_conformance.verify import find_problems
from cuda_morph_conformance.vocabulary import Seen

load_all()
GOOD = Path(__file__).with_name("good_plugin.py").read_text()

STARTUP = """
import sys
try:
    from cuda_morph_conformance.checks import load_all
    from cuda_morph_conformance import outcomes, registry, worker, result
    load_all()
    for name in list(registry.CHECKS)[3:]:
        del registry.CHECKS[name]
    outcomes.judge = result.judge = lambda *a, **k: outcomes.Outcome.PASSED
    worker._see = lambda *a: (worker.Seen.PASSED, "")
except ImportError:
    pass
"""

CONFTEST = """
import pytest
def pytest_collection_modifyitems(items): items.clear()
raise SystemExit("conftest was loaded")
"""


def certify(out, **options):
    command = [sys.executable, "-m", "cuda_morph_conformance", "run", "--plugin", "mychip"]
    done = subprocess.run(
        [*command, "--certify", "--out", str(out)],
        capture_output=True, text=True, check=False, **options,
    )  # fmt: skip
    assert done.returncode in {0, 1}, done.stderr
    return json.loads((out / "mychip" / "certificate.json").read_text())


def outcomes(certificate):
    return [(row["id"], row["view"], row["seen"], row["outcome"]) for row in certificate["results"]]


@pytest.mark.slow
def test_hostile_configuration_changes_nothing(install, tmp_path):
    install(GOOD.replace('name="mychip"', 'name="other"'))
    plain = certify(tmp_path / "plain")
    assert plain["counts"]["failed"] >= 1
    folder = tmp_path / "vendor"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --maxfail=1 -k nothing\n")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "json.py").write_text("raise SystemExit('json of the vendor')")
    startup = tmp_path / "startup"
    startup.mkdir()
    (startup / "sitecustomize.py").write_text(STARTUP)
    (startup / "usercustomize.py").write_text(STARTUP)
    (startup / "evil.py").write_text(CONFTEST)
    environment = {
        **os.environ,
        "PYTEST_ADDOPTS": "-k nothing -p evil",
        "PYTEST_PLUGINS": "evil",
        "PYTHONOPTIMIZE": "2",
        "PYTHONSTARTUP": str(startup / "sitecustomize.py"),
        "CUDA_MORPH_NO_PATCH": "1",
        "CUDA_MORPH_BLOCK": "mychip",
        "PYTHONPATH": os.pathsep.join([str(startup), os.environ["PYTHONPATH"]]),
    }
    hostile = certify(tmp_path / "hostile", cwd=folder, env=environment)
    assert outcomes(hostile) == outcomes(plain)
    assert hostile["checklist"] == plain["checklist"]
    assert find_problems(hostile) == []


TRICKS = {
    "the checklist": "registry.CHECKS.clear()",
    "require": "registry.require.__code__ = (lambda condition, message: None).__code__",
    "a check": "registry.CHECKS['CM-LOAD-020'].run.__code__ = (lambda subject: None).__code__",
    "the record of a check": (
        "object.__setattr__(registry.CHECKS['CM-LOAD-020'], 'run', lambda subject: None)"
    ),
    "the worker": "worker._see = lambda *a: (worker.Seen.PASSED, '')",
    "the rule": "outcomes.judge = lambda *a, **k: outcomes.Outcome.PASSED",
    "the subject": "subject.Subject.backend = lambda self: type('B', (), {'name': 'mychip'})()",
}


@pytest.mark.parametrize("trick", TRICKS)
def test_a_plugin_cannot_change_the_suite_from_within(trick, install):
    names = "outcomes, registry, subject, worker"
    source = f"from cuda_morph_conformance import {names}\n{TRICKS[trick]}\n"
    install(source + GOOD.replace('name="mychip"', 'name="other"'))
    other, named, after = run_checks("mychip", ["CM-LOAD-005", "CM-LOAD-020", "CM-LOAD-021"])
    assert named.seen is Seen.FAILED, named
    assert {"CM-LOAD-005", "CM-LOAD-021"} == {other.id, after.id}


def test_an_installed_suite_that_was_changed_is_named(tmp_path):
    info = tmp_path / "cuda_morph_conformance-9.dist-info"
    info.mkdir()
    package = tmp_path / "cuda_morph_conformance"
    source = Path(describe_suite.__code__.co_filename).parent
    subprocess.run(["cp", "-r", str(source), str(package)], check=True)
    lines = [record_line(tmp_path, path) for path in sorted(package.rglob("*.py"))]
    (info / "RECORD").write_text("\n".join([*lines, "x"]) + "\n")
    (info / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: cuda-morph-conformance\nVersion: 9\n"
    )
    found = described(tmp_path)
    assert (found["version"], found["editable"], found["modified"]) == ("9", False, [])
    (package / "outcomes.py").write_text((package / "outcomes.py").read_text() + "\n")
    (package / "extra.py").write_text("")
    (package / "waivers.py").unlink()
    changed = described(tmp_path)["modified"]
    assert changed == [
        "cuda_morph_conformance/outcomes.py",
        "cuda_morph_conformance/waivers.py (absent)",
        "extra.py (added)",
    ]
    assert described(tmp_path)["files_sha256"] != found["files_sha256"]


def record_line(root, path):
    import base64
    import hashlib

    digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=")
    return f"{path.relative_to(root)},sha256={digest.decode()},{path.stat().st_size}"


def described(root):
    code = "import json; from cuda_morph_conformance import integrity as i; print(json.dumps(i.describe_suite()))"
    env = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
