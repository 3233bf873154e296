"""Vendors' error codes: looking them up, and the exceptions that they become."""

import json
import os
import subprocess
import sys

import pytest
from fake_distributions import FakeSite, source

from cuda_morph import environment, errors
from cuda_morph.error_lookup import error_table
from cuda_morph.error_semantics import SEMANTICS
from cuda_morph.error_translation import exception_class

CODES = """
@hookimpl
def cuda_morph_error_codes():
    yield ErrorCode(code="0", name="mcSuccess", meaning="success", semantic="success")
    yield ErrorCode(code="207", name="MC_NO_MEMORY", meaning="The card is full.",
                    remedy="Use a smaller batch.", family="runtime", semantic="out_of_memory")
    yield ErrorCode(code="207", name="MCL_RING", meaning="No ring.", family="collectives",
                    semantic="collective_system")
    yield ErrorCode(code="700", name="mcIllegal", meaning="bad address", semantic="illegal_access")
    yield ErrorCode(code="EI0006", name="EI0006", meaning="socket timed out", semantic="timeout")
    yield ErrorCode(code="MC_CALL_FAILED", name="MC_CALL_FAILED", meaning="a call failed")
    yield ErrorRule(pattern=r"mcMalloc of \\d+ bytes failed", semantic="out_of_memory")
    yield ErrorRule(pattern=r"is invalid for input of size", semantic="out_of_memory")
"""


@pytest.fixture
def plugin(fake_site: FakeSite, monkeypatch: pytest.MonkeyPatch):
    # The vendors' own plugins may be installed here, with numbers of their own.
    monkeypatch.setenv(environment.PLUGINS.name, "mychip,other")
    fake_site.add("mychip", source("mychip", extra=CODES))
    other = "from cuda_morph.records import ErrorCode\n@hookimpl\ndef cuda_morph_error_codes():\n"
    other += '    yield ErrorCode(code="700", name="ocFault", meaning="other", semantic="launch")\n'
    fake_site.add("other", source("other") + other)
    error_table.cache_clear()
    yield fake_site
    error_table.cache_clear()


def names(matches):
    return [match.entry.name for match in matches]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("700", ["mcIllegal", "ocFault"]),
        ("0x2BC", ["mcIllegal", "ocFault"]),
        ("207", ["MC_NO_MEMORY", "MCL_RING"]),
        ("ei0006", ["EI0006"]),
        ("MCILLEGAL", ["mcIllegal"]),
        ("701", []),
        ("-700", []),
    ],
)
def test_lookup(plugin, query, expected):
    assert names(error_table().lookup(query)) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("call failed, error code is 700 at step 12", ["mcIllegal", "ocFault"]),
        ("ret=207", ["MC_NO_MEMORY", "MCL_RING"]),
        ("step 700 loss 207", []),
        ("error code 700.5 ms", []),
        ("[ERROR] EI0006 Getting socket times out", ["EI0006"]),
        ("mcIllegal: (error 700)", ["mcIllegal", "ocFault"]),
    ],
)
def test_search_of_a_log_line(plugin, line, expected):
    assert names(error_table().search(line)) == expected


def test_translation(plugin):
    import torch

    original = RuntimeError("mcMalloc of 16 bytes failed")
    translated = errors.translate(original)
    assert type(translated) is torch.OutOfMemoryError
    assert translated.__cause__ is original
    assert str(translated).startswith("mcMalloc of 16 bytes failed\n")

    named = errors.translate(RuntimeError("driver said MC_NO_MEMORY"), "mychip")
    assert type(named) is torch.OutOfMemoryError
    assert "The card is full." in str(named)
    assert "next step: Use a smaller batch." in str(named)

    fault = errors.translate(RuntimeError("mcIllegal"), "mychip")
    assert type(fault) is torch.AcceleratorError
    assert "bad address" in str(fault)


@pytest.mark.parametrize("text", ["error: MC_NO_MEMORY", "mcMalloc of 8 bytes failed"])
def test_exhaustion_has_the_words_that_programs_look_for(plugin, text):
    raised = errors.translate(RuntimeError(text), "mychip")
    assert "out of memory" in str(raised).lower()


def test_what_is_not_translated(plugin):
    import torch

    for error in (
        RuntimeError("shapes do not match"),
        RuntimeError("mcSuccess"),
        ValueError("mcIllegal"),
        torch.OutOfMemoryError("mcIllegal"),
        NotImplementedError("mcIllegal"),
    ):
        assert errors.translate(error) is error


def test_an_ambiguous_number_chooses_no_class_and_lists_all(plugin):
    translated = errors.translate(RuntimeError("failed with error code 207"), "mychip")
    assert type(translated) is RuntimeError
    assert "MC_NO_MEMORY" in str(translated)
    assert "MCL_RING" in str(translated)


def test_a_number_that_says_more_than_a_name_counts(plugin):
    import torch

    text = "mcSync failed, error code is 700\n[ERROR] MC_CALL_FAILED"
    translated = errors.translate(RuntimeError(text), "mychip")
    assert type(translated) is torch.AcceleratorError
    assert "bad address" in str(translated)


def test_unknown_backend(plugin):
    with pytest.raises(errors.UnknownBackendError):
        errors.translate(RuntimeError("x"), "nobody")


def test_every_class_is_what_programs_for_cuda_catch():
    for semantic in SEMANTICS.values():
        found = exception_class(semantic.exception)
        assert issubclass(found, RuntimeError)
        if semantic.exception != "RuntimeError":
            assert found is not RuntimeError, f"{semantic.exception} does not exist in torch"


def run(site, *arguments, stdin=""):
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(site.root)},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def command(site, *arguments, stdin=""):
    return run(site, "-m", "cuda_morph", "error", *arguments, stdin=stdin)


def test_command_explains_a_code(plugin):
    code, out, _ = command(plugin, "207", "--backend", "mychip")
    assert code == 0
    assert "(2 meanings)" in out
    assert "The card is full." in out
    assert "Use a smaller batch." in out
    code, out, _ = command(plugin, "700", "--format", "json")
    assert code == 0
    [answer] = json.loads(out)
    assert [match["plugin"] for match in answer["matches"]] == ["mychip", "other"]


def test_command_reads_a_log(plugin):
    log = "step 1\nerror code is 700\nagain error code is 700\n\x00\xff ERR EI0006\n"
    code, out, _ = command(plugin, "--backend", "mychip", stdin=log)
    assert code == 0
    assert out.count("mcIllegal") == 1
    assert "socket timed out" in out
    code, out, err = command(plugin, stdin="all is well\n")
    assert (code, out) == (1, "")
    assert "No known error code" in err


def test_command_with_unknown_input(plugin):
    code, _, err = command(plugin, "MC_NO_MEMORX")
    assert code == 1
    assert "unknown" in err
    assert "MC_NO_MEMORY" in err
    code, _, err = command(plugin, "--backend", "nobody", "7")
    assert code == 2
    assert "CM-E01" in err
    assert "Traceback" not in err


POSING = """
from cuda_morph_sim.plugin import (
    cuda_morph_backend as _backend, cuda_morph_detect, cuda_morph_device_mapping,
)
from dataclasses import replace

@hookimpl
def cuda_morph_backend():
    return replace(_backend(), name="posing")
"""

AUTOMATIC = """
import torch, cuda_morph
def fails():
    torch.zeros(2, device="cpu").view(3)
with cuda_morph.activate("posing") as activation:
    try:
        fails()
    except torch.OutOfMemoryError as error:
        assert "shape '[3]' is invalid" in str(error), error
        assert type(error.__cause__) is RuntimeError
    else:
        raise SystemExit("not raised")
    for call in (lambda: torch.zeros(2) @ torch.zeros(3), lambda: torch.zeros(2, device="nosuch")):
        try:
            call()
        except RuntimeError as error:
            assert type(error) is RuntimeError, error
try:
    fails()
except RuntimeError as error:
    assert type(error) is RuntimeError, "still translated after deactivation"
print("ok")
"""


def test_errors_raised_by_pytorch_are_translated_while_active(fake_site):
    fake_site.add("posing", source("x").partition("@hookimpl")[0] + POSING + CODES)
    code, out, err = run(fake_site, "-c", AUTOMATIC)
    assert (code, out) == (0, "ok\n"), err
