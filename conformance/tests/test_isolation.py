"""A plugin may crash, leave or hang: it costs the check that was running, and no other."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.registry import CheckFailed
from cuda_morph_conformance.runner import run_checks
from cuda_morph_conformance.subject import Subject
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
        ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),  # as the kernel does without memory
        (
            "import resource as r; r.setrlimit(r.RLIMIT_AS, (1 << 32, 1 << 32)); bytearray(1 << 40)",
            "MemoryError",
        ),
        ("os.abort()", "SIGABRT"),  # as a vendor's library does where it asserts
        ("os.kill(os.getpid(), signal.SIGSTOP)", "SIGKILL"),  # even its own watchdog is stopped
    ],
)
def test_only_the_running_check_fails(body, mention, install, monkeypatch):
    monkeypatch.setattr("cuda_morph_conformance.processes.GRACE", 1.0)
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


def test_what_a_dying_plugin_started_is_ended_with_it(install, tmp_path):
    pid = tmp_path / "pid"
    start = f"import subprocess; p = subprocess.Popen(['sleep', '300']); open({str(pid)!r}, 'w').write(str(p.pid)); os._exit(1)"
    install(GOOD + FATAL.format(body=start))
    run_checks("mychip", ["CM-LOAD-042"], limit=5)
    assert ended(pid.read_text())


def ended(pid, seconds=10):
    """Whether a process is gone, or only waits for its parent to take notice."""
    status = Path(f"/proc/{pid}/stat")
    for _ in range(seconds * 10):
        if not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.1)
    return False


def test_a_program_that_hangs_is_ended_before_its_check(tmp_path):
    subject = Subject("cpu", limit=3)
    with pytest.raises(CheckFailed, match=r"did not end within 2\.7 s: last words"):
        subject.run_program(
            "print('last words', flush=True); import time; time.sleep(60)", shim=False
        )
