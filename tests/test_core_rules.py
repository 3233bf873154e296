"""Rules of the core's source: one direction of imports, no vendor, one place that patches."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = ROOT / "packages" / "cuda-morph-core" / "src" / "cuda_morph"
MODULES = {
    ".".join(path.relative_to(CORE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(CORE.rglob("*.py"))
}
each_module = pytest.mark.parametrize("name", MODULES)

LAYERS = (
    # What everybody may use.
    {
        "frozen_record",
        "records",
        "capabilities",
        "error_semantics",
        "errors",
        "environment",
        "patching",
        "torch_facts",
        "import_watch",
        "adapter",
        "atomic_file",
        "json_input",
        "worker_process",
        "report_page",
    },
    # The contract with plugins, the table of CUDA names, and whose world is seen.
    {"hook_marks", "hookspecs", "hook_table", "api_table", "views"},
    {"hook_calls", "plugin_status", "plugin_listing", "plugin_loading", "plugins"},
    # What authors of plugins may use to write their hooks.
    {"record_files", "torch_build", "visible_lists", "adapter_detection", "health_checks"},
    # What one device answers, and the plugins that core brings along.
    {"device", "builtin"},
    {
        "selection",
        "simulation",
        "interception",
        "bridges",
        "ecosystem",
        "error_lookup",
        "error_translation",
        "scan",
        "explanation",
        "port",
    },
    {
        "activation",
        "manifest",
        "usage",
        "trace",
        "information",
        "inheritance",
        "compile_backend",
        "scaffolding",
    },
    # What commands measure and compare.
    {"chosen_device", "verification", "model_factory", "operator_audit", "benchmarks"},
    {"diagnosis", "quantization"},
    # Ways in: `run`, the import-and-go form, the command line.
    {"launcher", "auto"},
    {"cli", "__main__", "__init__"},
)
"""Imports go from later rows to earlier ones or stay in their row. A new module needs a place."""

RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}

VENDORS = re.compile(
    r"ascend|huawei|npu|cann|hccl|cambricon|mlu|cncl|musa|moore|mthreads|mccl|biren|supa|brcl"
    r"|enflame|gcu|eccl|topsrider|metax|maca|rocm|amd|radeon|xpu|intel|oneapi|xccl"
)


def without_type_checking(tree):
    """Yields the nodes of a module, less what is imported for type checkers only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from (part for child in node.orelse for part in without_type_checking(child))
        else:
            yield node
            yield from without_type_checking(node)


def imported_modules(path):
    """Returns the core modules that a file imports, at module level or later."""
    found = set()
    for node in without_type_checking(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    inside = {name.removeprefix("cuda_morph.") for name in found if name.startswith("cuda_morph.")}
    return {name.partition(".")[0] for name in inside}


def top(name):
    return name.partition(".")[0]


@each_module
def test_module_has_a_place(name):
    assert top(name) in RANK


@each_module
def test_imports_flow_one_way(name):
    upward = {
        other
        for other in imported_modules(MODULES[name])
        if other in RANK and RANK[other] > RANK[top(name)]
    }
    assert not upward


PYTORCH_S_OWN = {"cuda_backends.json": ["rocm"], "torch_facts": ["xpu"], "torch_build": ["xpu"]}
"""Device types that PyTorch itself has built in may be named where its facts are kept."""

PROSE = {"note", "replacement", "summary", "why", "advice", "example"}
"""Fields of data files that are documents."""


def is_document(node):
    """Tells a docstring, of a module, class, function or attribute, from other statements."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def code_words(node):
    """Yields every identifier and string literal below a node, docstrings left out."""
    for child in ast.iter_child_nodes(node):
        if is_document(child):
            continue
        for field in ("id", "name", "attr", "arg", "module"):
            word = getattr(child, field, None)
            if isinstance(word, str):
                yield word
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value
        yield from code_words(child)


def vendor_words(texts):
    parts = {part for text in texts for part in re.split(r"[^a-z0-9]+", text.lower())}
    return sorted(part for part in parts if VENDORS.fullmatch(part))


@each_module
def test_core_names_no_vendor(name):
    found = vendor_words(code_words(ast.parse(MODULES[name].read_text())))
    assert found == PYTORCH_S_OWN.get(name, [])


@pytest.mark.parametrize("path", sorted(CORE.rglob("*.json")), ids=lambda path: path.name)
def test_data_of_core_names_no_vendor(path):
    found = vendor_words(data_words(json.loads(path.read_text())))
    assert found == PYTORCH_S_OWN.get(path.name, [])


def data_words(value):
    """Yields keys and texts of a JSON value, prose left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (word for item in value for word in data_words(item))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            if key not in PROSE:
                yield from data_words(item)


def test_the_vendor_rule_sees_code_and_not_documents():
    source = 'def f():\n    """For the npu."""\n    return torch_npu.is_available("hccl:0")\n'
    assert vendor_words(code_words(ast.parse(source))) == ["hccl", "npu"]


def torch_names(tree):
    """Returns the names that a module binds to torch or to something from it."""
    found = {"torch"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {a.asname for a in node.names if a.name.startswith("torch.") and a.asname}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch":
            found |= {alias.asname or alias.name for alias in node.names}
    return found


def changed_objects(tree):
    """Yields source text of statements that set or delete attributes of foreign objects."""
    foreign = torch_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"setattr", "delattr"}:
            yield ast.unparse(node)
        if not isinstance(node, ast.Attribute) or isinstance(node.ctx, ast.Load):
            continue
        base = node.value
        while isinstance(base, (ast.Attribute, ast.Subscript)):
            base = base.value
        if isinstance(base, ast.Name) and base.id in foreign:
            yield ast.unparse(node)


@each_module
def test_only_the_journal_changes_foreign_objects(name):
    changed = list(changed_objects(ast.parse(MODULES[name].read_text())))
    assert (changed == []) or name == "patching"


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.cuda.is_available = f",
        "from torch import Tensor\nTensor.cuda = f",
        "import torch.cuda as tc\ndel tc.Stream",
        "setattr(thing, 'x', 1)",
    ],
)
def test_the_patching_rule_sees_a_change(source):
    assert list(changed_objects(ast.parse(source)))
