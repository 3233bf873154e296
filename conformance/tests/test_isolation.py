"""A plugin may crash, leave or hang: it costs the check that was running, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.runner import run_checks
from cuda_morph_conformance.vocabulary import Seen

load_all()
GOOD = Path(__file__).with_name("good_plugin.py").read_text()

# The error table is asked for by the second check only; the third asks for something else.
THREE = ["CM-LOAD-020", "CM-LOAD-042", "CM-LOAD-043"]
FATAL = """
import os, signal, sys, time

@hookimpl
def cuda_morph_error_codes():
    {body}
    return ()
"""


@pytest.mark.parametrize(
    ("body", "mention"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("print('last words', flush=True); os._exit(7)", "exit code 7; last line: last words"),
        ("sys.exit(0)", "SystemExit"),
        ("time.sleep(60)", "time allowed"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ],
)
def test_only_the_running_check_fails(body, mention, install):
    install(GOOD + FATAL.format(body=body))
    before, struck, after = run_checks("mychip", THREE, limit=3)
    assert (before.seen, after.seen) == (Seen.PASSED, Seen.PASSED)
    assert struck.seen is Seen.FAILED
    assert mention in struck.message


def test_a_plugin_that_cannot_be_imported_fails_each_check_that_needs_it(install):
    install("import os\nos._exit(3)\n")
    found, named, accepted = run_checks("mychip", ["CM-LOAD-001", "CM-LOAD-020", "CM-LOAD-006"])
    assert found.seen is Seen.PASSED
    assert named.seen is Seen.FAILED
    assert accepted.seen is Seen.FAILED


def test_a_process_that_never_starts_leaves_everything_missing(install, monkeypatch):
    install()
    monkeypatch.setattr("cuda_morph_conformance.processes.sys.executable", "/bin/false")
    results = run_checks("mychip", THREE)
    assert {result.seen for result in results} == {Seen.ABSENT}
    assert "exit code 1" in results[0].message
