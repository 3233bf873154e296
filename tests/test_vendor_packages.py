"""What holds for every plugin of a vendor, whatever the vendor."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from cuda_morph import api_table
from cuda_morph.capabilities import CAPABILITIES
from cuda_morph.error_semantics import SEMANTICS
from cuda_morph.hook_table import HOOKS
from cuda_morph.plugins import PluginStatus, examine
from cuda_morph.records import ErrorCode, ErrorRule, Support, Treatment

ROOT = Path(__file__).parents[1]
NAMES = sorted(
    path.parent.name.removeprefix("cuda-morph-")
    for path in ROOT.glob("packages/cuda-morph-*/pyproject.toml")
    if path.parent.name not in {"cuda-morph-core", "cuda-morph-native", "cuda-morph-sim"}
)
OUT_OF_TREE = ("ascend", "biren", "cambricon", "enflame", "musa")
"""Vendors whose device takes PyTorch's place for out-of-tree devices."""
CODES = {
    "ascend": 555,
    "biren": 7,
    "cambricon": 156,
    "enflame": 77,
    "metax": 169,
    "musa": 146,
    "rocm": 87,
    "xpu": 149,
}
MAPPINGS = "cuda_morph_api_mappings"
each = pytest.mark.parametrize("name", NAMES)
each_out_of_tree = pytest.mark.parametrize("name", OUT_OF_TREE)


def plugin(name):
    return importlib.import_module(f"cuda_morph_{name}.plugin")


def ask(name, hook):
    function = getattr(plugin(name), hook, None)
    return () if function is None else function()


def data_files(name):
    return sorted((ROOT / f"packages/cuda-morph-{name}/src/cuda_morph_{name}/data").glob("*.json"))


def test_there_are_eight():
    assert list(CODES) == NAMES


def test_static_hooks_import_neither_torch_nor_an_adapter():
    static = [name for name, info in HOOKS.items() if info.vendor_library == "no"]
    code = (
        "import importlib, sys, time\n"
        "import cuda_morph.hookspecs, cuda_morph.record_files, cuda_morph.adapter_detection\n"
        f"for name in {NAMES}:\n"
        "    start = time.perf_counter()\n"
        "    module = importlib.import_module(f'cuda_morph_{name}.plugin')\n"
        "    module.cuda_morph_backend()\n"
        "    print(name, time.perf_counter() - start)\n"
        f"    for hook in {static}:\n"
        "        function = getattr(module, hook, None)\n"
        "        if function: list(answer) if hasattr(answer := function(), '__iter__') else None\n"
        "roots = {module.partition('.')[0] for module in sys.modules}\n"
        "bad = {root for root in roots if root == 'numpy' or root.startswith('torch')}\n"
        "assert not bad, bad\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seconds = dict(line.split() for line in done.stdout.splitlines())
    assert sorted(seconds) == NAMES
    # 20 ms is the budget for one plugin in a listing; without compiled files it takes longer.
    assert max(map(float, seconds.values())) < 0.06, seconds


@each
def test_the_contract_is_kept(name):
    row = examine(plugin(name), name=name, torch_version="2.13.0")
    assert row.status in {PluginStatus.READY, PluginStatus.UNAVAILABLE}, row.reason
    assert row.notes == ()
    assert row.backend.name == name
    assert not row.backend.simulated


@each
def test_requirements_can_be_read(name):
    for line in ask(name, "cuda_morph_backend").runtime_requires:
        Requirement(line)


@each
def test_every_error_code_is_there_once(name):
    rows = [row for row in ask(name, "cuda_morph_error_codes") if isinstance(row, ErrorCode)]
    assert len(rows) == CODES[name]
    repeated = [
        key for key, n in Counter((r.family, r.code, r.name) for r in rows).items() if n > 1
    ]
    assert repeated == []
    meanings = defaultdict(set)
    for row in rows:
        meanings[row.family, row.code].add(row.semantic)
    assert [key for key, found in meanings.items() if len(found) > 1] == []


@each
def test_every_error_code_is_explained(name):
    for row in ask(name, "cuda_morph_error_codes"):
        assert row.semantic in SEMANTICS, row
        if isinstance(row, ErrorRule):
            re.compile(row.pattern)
        else:
            assert row.meaning.strip(), row
            assert row.remedy.strip(), row
            assert row.source.strip(), row
            assert row.family.strip(), row


@each
def test_running_out_of_memory_is_known(name):
    found = [row for row in ask(name, "cuda_morph_error_codes") if row.semantic == "out_of_memory"]
    assert found


@each
def test_most_codes_are_classified(name):
    semantics = Counter(row.semantic for row in ask(name, "cuda_morph_error_codes"))
    assert semantics["unknown"] < sum(semantics.values()) / 10


@each
def test_api_mappings_say_what_happens(name):
    core = api_table.by_name()
    rows = list(ask(name, "cuda_morph_api_mappings"))
    surface = ask(name, "cuda_morph_surface")
    names = {item.name for item in surface.names} if surface else set()
    assert [key for key, n in Counter(row.name for row in rows).items() if n > 1] == []
    for row in rows:
        assert row.name in core
        if row.treatment is Treatment.REDIRECT:
            assert row.target.removeprefix(f"{surface.module}.") in names, row
            continue
        # The adapter has no such name: core answers, in the way of its own table.
        own = core[row.name].treatment
        answered = Treatment.EMULATE if own is Treatment.REDIRECT else own
        assert (row.treatment, row.target) == (answered, None), row
        assert row.name.removeprefix("torch.cuda.") not in names, row
        assert row.note, row


@pytest.mark.parametrize("name", [*OUT_OF_TREE, "xpu"])
def test_every_public_name_of_cuda_has_a_row(name):
    assert len(ask(name, "cuda_morph_api_mappings")) == 131


@each
def test_claims_are_known_and_reasoned(name):
    claims = list(ask(name, "cuda_morph_capabilities"))
    ids = [claim.id for claim in claims]
    assert set(ids) <= set(CAPABILITIES)
    assert len(ids) == len(set(ids))
    assert [claim.id for claim in claims if not claim.note] == []


@each
def test_nothing_that_needs_a_card_is_claimed_without_saying_so(name):
    positive = {Support.FULL, Support.PARTIAL, Support.EMULATED}
    claims = [claim for claim in ask(name, "cuda_morph_capabilities") if claim.support in positive]
    if name in OUT_OF_TREE:
        assert any("not on a card" in claim.note for claim in claims)
        return
    beyond = {claim.id for claim in claims if not claim.id.startswith("load.")}
    native = ask(name, "cuda_morph_backend").device_type == "cuda"
    assert beyond <= ({"error.vendor_codes"} if native else set(CAPABILITIES))


@each
def test_the_collective_backend_is_one_of_those_listed(name):
    names = [item.name for item in ask(name, "cuda_morph_collectives")]
    assert ask(name, "cuda_morph_backend").collective_backend in names


@each
def test_version_rows_have_sources(name):
    rows = list(ask(name, "cuda_morph_version_matrix"))
    assert rows
    assert all(row.source for row in rows)


@each
def test_health_checks_answer_without_a_card(name):
    checks = list(ask(name, "cuda_morph_health_checks"))
    assert len({check.id for check in checks}) == len(checks) >= 4
    for check in checks:
        assert check.id.startswith(f"{name}.")
        result = check.run()
        assert result.message
        assert check.fix
    assert any(check.run().ok is False for check in checks)


@each
def test_data_names_its_source(name):
    for path in data_files(name):
        assert json.loads(path.read_text())["about"], path
        assert re.search("(?i)source|read from", path.read_text()), path


@each_out_of_tree
def test_the_surface_belongs_to_the_device_module(name):
    surface, mapping = ask(name, "cuda_morph_surface"), ask(name, "cuda_morph_device_mapping")
    assert surface.module == mapping.module
    names = [item.name for item in surface.names]
    assert len(names) == len(set(names))
    for item in surface.names:
        assert item.kind in {"function", "class", "method", "constant", "module"}
        assert item.kind != "method" or item.name.rpartition(".")[0] in names
    assert {"device_count", "set_device", "synchronize", "memory_allocated", "Stream"} <= set(names)


@each_out_of_tree
def test_the_personality_can_be_simulated(name):
    personality = ask(name, "cuda_morph_personality")
    assert personality.source
    assert set(personality.error_texts) <= set(SEMANTICS)
    assert "out_of_memory" in personality.error_texts
    assert "name" in personality.properties


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(OUT_OF_TREE)))
def test_a_device_type_of_pytorch_itself_is_not_simulated(name):
    assert not hasattr(plugin(name), "cuda_morph_personality")


@each
def test_the_readme_says_what_nobody_has_run(name):
    text = (ROOT / f"packages/cuda-morph-{name}/README.md").read_text()
    assert "\nSimulated: " in text
    assert "\nNobody has run: " in text
    assert f"{CODES[name]} error codes" in text
    surface = ask(name, "cuda_morph_surface")
    if surface:
        assert re.search(rf"names of `{surface.module}`, {len(surface.names)}\b", text)
        counts = Counter(row.treatment is Treatment.REDIRECT for row in ask(name, MAPPINGS))
        same, other, missing = re.search(
            r"(\d+) the same, (\d+) renamed, (\d+) missing", text
        ).groups()
        assert (int(same) + int(other), int(missing)) == (counts[True], counts[False])


@pytest.mark.parametrize("name", ["metax", "rocm"])
def test_names_that_pytorch_answers_itself_are_not_said_to_be_refused(name):
    from cuda_morph.explanation import explain_topic
    from cuda_morph.scan.finding import Verdict
    from cuda_morph.scan.verdict import Judge

    rows = {row[0]: row for row in explain_topic("torch.cuda.CUDAGraph").rows}
    assert rows[name][1] == ""
    assert "nothing is changed" in rows[name][4]
    assert rows["sim"][1] == "refuse"
    finding = type("Finding", (), {"rule": "CM201", "symbol": "torch.cuda.CUDAGraph"})()
    assert Judge(name)._by_table(finding, Verdict.UNKNOWN, None).verdict is Verdict.UNCHANGED
