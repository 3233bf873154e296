"""The plugins of the repository that need no card reach the level that they should, in both views."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest

from cuda_morph_conformance.verify import find_problems

LIBRARIES = ("safetensors", "transformers")

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    absent = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if absent:
        pytest.skip(f"a whole run needs {', '.join(absent)}")
    out = tmp_path_factory.mktemp("certificates")
    command = [
        sys.executable,
        "-m",
        "cuda_morph_conformance",
        "run",
        "--certify",
        "--out",
        str(out),
    ]
    subprocess.run([*command, "--plugin", "sim", "--plugin", "cpu"], check=False)
    return {
        name: json.loads((out / name / "certificate.json").read_text()) for name in ("sim", "cpu")
    }


def not_held(certificate):
    return [
        f"{row['id']}[{row['view']}] {row['message']}"
        for row in certificate["results"]
        if row["outcome"] in {"failed", "missing"}
    ]


def test_the_simulated_device_accelerates(certificates):
    certificate = certificates["sim"]
    assert not_held(certificate) == []
    assert (certificate["level"], certificate["evidence"]) == ("accelerates", "simulated")
    assert find_problems(certificate) == []


def test_the_cpu_reaches_what_its_claims_allow(certificates):
    certificate = certificates["cpu"]
    assert certificate["level"] == "loads"
    assert certificate["evidence"] == "none"
    assert find_problems(certificate) == []
