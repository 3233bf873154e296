"""``cuda-morph explain``: every kind of topic, also unknown ones."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner
from fake_distributions import source

from cuda_morph import api_table
from cuda_morph.capabilities import CAPABILITIES
from cuda_morph.cli.group import cli
from cuda_morph.errors import CATALOGUE
from cuda_morph.explanation import explain_topic
from cuda_morph.scan.rules import RULES

MAPPING = """
@hookimpl
def cuda_morph_api_mappings(torch_version):
    yield ApiMapping(name="torch.cuda.utilization", treatment=Treatment.REFUSE,
                     support=Support.NEVER, note="no counter", replacement="mychip-smi")

@hookimpl
def cuda_morph_capabilities(torch_version):
    yield CapabilityClaim(id="graph.capture", support=Support.NOT_YET, note="next year")
"""


def explain(*topics):
    result = CliRunner().invoke(cli, ["explain", *topics], standalone_mode=False)
    return result.return_value, result.output


@pytest.mark.parametrize(
    "topic",
    [
        *api_table.by_name(),
        *RULES,
        *CAPABILITIES,
        *(kind.code for kind in CATALOGUE),
    ],
)
def test_every_topic_has_an_explanation(topic):
    answer = explain_topic(topic)
    assert answer is not None
    assert topic in answer.title
    assert answer.facts


def test_name_shows_each_backend(fake_site):
    fake_site.add("mychip", source("mychip", extra=MAPPING))
    code, out = explain("cuda.utilization", "graph.capture")
    assert code == 0
    assert "torch.cuda.utilization" in out
    assert "no counter Use mychip-smi." in out
    assert "next year" in out


def test_check_of_the_conformance_suite():
    pytest.importorskip("cuda_morph_conformance")
    code, out = explain("cm-load-001")
    assert code == 0
    assert "MUST" in out
    assert "fix" in out


@pytest.mark.parametrize(
    ("topic", "shown"),
    [("", "''"), ("a\nb\x1b[31m", r"'a\nb\x1b[31m'"), ("x" * 9999, f"{'x' * 96} ...")],
)
def test_odd_topics_are_said_in_one_line_without_orders_to_the_terminal(topic, shown):
    code, out = explain(topic)
    assert code == 1
    assert out.startswith(f"{shown}: nothing is known")


def test_unknown_topics_are_said_and_known_ones_shown():
    done = subprocess.run(
        [sys.executable, "-m", "cuda_morph", "explain", "cuda.syncronize", "CM204", "CM-XXX-999"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "CM204" in done.stdout
    assert "torch.cuda.synchronize" in done.stderr
    assert "CM-XXX-999: nothing is known" in done.stderr


def test_json():
    code, out = explain("CM204", "nothing at all", "--format", "json")
    assert code == 1
    answer = json.loads(out[: out.rindex("}") + 1])
    assert answer["CM204"]["kind"] == "rule"
    assert answer["nothing at all"] is None
