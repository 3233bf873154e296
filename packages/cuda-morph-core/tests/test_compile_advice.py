"""``cuda-morph compile``: the choice in a fresh process, and compilers that fail to load."""

import json

import pytest
from click.testing import CliRunner
from fake_distributions import source

from cuda_morph.cli.group import cli
from cuda_morph.diagnosis.compilers import advise
from cuda_morph.errors import UnknownBackendError

pytestmark = pytest.mark.long

CLAIMS = """
@hookimpl
def cuda_morph_capabilities(torch_version):
    yield CapabilityClaim(id="compile.dynamo", support=Support.PARTIAL, note="inference only")
    yield CapabilityClaim(id="graph.capture", support=Support.FULL)
"""


@pytest.fixture
def compiler(fake_site):
    """Registers a compiler for the CPU with Dynamo as a vendor would."""

    def register(code):
        (fake_site.root / "fake_compiler.py").write_text(code)
        fake_site.modules.append("fake_compiler")
        info = fake_site.root / "mycompiler-2.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mycompiler\nVersion: 2.0\n")
        entry = "[torch_dynamo_backends]\ncpu = fake_compiler:compile\n"
        (info / "entry_points.txt").write_text(entry)
        fake_site.changed()

    return register


def failure(advice):
    [found] = [one for one in advice.findings if one.level.value == "fail"]
    return found


def test_without_a_backend_nothing_is_activated():
    advice = advise()
    assert advice.choice == "inductor"
    assert "no accelerator" in advice.why
    assert {"inductor", "aot_eager"} <= {one.name for one in advice.registered}
    assert {"cpu"} <= {one.backend for one in advice.claims}
    assert not advice.failed


def test_a_vendors_compiler_comes_first_and_is_run(compiler):
    compiler("def compile(graph, inputs):\n    return graph.forward\n")
    advice = advise("cpu", full=True)
    assert advice.choice == "cpu", advice.findings
    assert "registered with Dynamo" in advice.why
    [mine] = [one for one in advice.registered if one.name == "cpu"]
    assert mine.source == "mycompiler 2.0"
    assert not advice.failed


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import nothing_of_this_name\n", "nothing_of_this_name"),
        ("import os; os.abort()\n", "signal 6"),
        ("def compile(graph, inputs):\n    raise OSError('no licence')\n", "no licence"),
        (
            "def compile(graph, inputs):\n    return lambda *a: tuple(x + 1 for x in graph(*a))\n",
            "another result",
        ),
    ],
)
def test_a_compiler_that_fails_is_a_finding(compiler, code, words):
    compiler(code)
    advice = advise("cpu", full=True)
    assert advice.failed
    assert words in failure(advice).message
    assert "doctor --plugin cpu" in failure(advice).fix
    # One that loads was chosen, whatever comes of it then.
    assert advice.choice == ("cpu" if code.startswith("def") else None)


def test_a_process_that_hangs_is_ended(compiler):
    compiler("import time; time.sleep(600)\n")
    assert "within" in failure(advise("cpu", seconds=15)).message


def test_an_accelerator_that_is_not_there(fake_site):
    absent = "available=False, reason='no card in this machine'"
    fake_site.add("mychip", source("mychip", detection=absent, extra=CLAIMS))
    advice = advise("mychip")
    assert advice.choice is None
    assert "no card in this machine" in failure(advice).message
    assert [(one.id, one.support) for one in advice.claims] == [("compile.dynamo", "partial")]


def test_unknown_names():
    for name in ("no-such", "no-such:cpu", ":", "", "sim:", "sim:no-such"):
        with pytest.raises(UnknownBackendError):
            advise(name)


def test_command_line(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    words = ["compile", "--backend", "cpu", "--full"]
    result = CliRunner().invoke(cli, words, standalone_mode=False)
    assert result.return_value == 0
    assert 'backend="aot_eager"' in result.output
    assert "no C++ compiler" in result.output
    result = CliRunner().invoke(cli, ["compile", "--format", "json"], standalone_mode=False)
    assert json.loads(result.output)["choice"] == "inductor"
