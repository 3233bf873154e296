"""Porting: what is rewritten, what is left, and that nothing else is ever touched."""

import ast
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cuda_morph.port.source_port import port_source

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
HEAD = "import torch\n"
TYPE = 'DEVICE_TYPE = getattr(torch.accelerator.current_accelerator(), "type", "cuda")\n'
MODULE = "DEVICE_MODULE = torch.get_device_module(DEVICE_TYPE)\n"


def ported(line, **options):
    """Ports one line below ``import torch`` and returns what it became."""
    after = port_source(f"{HEAD}\n{line}\n", **options).after
    return after.removeprefix(HEAD).replace(TYPE, "").replace(MODULE, "").strip()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('x = torch.zeros(2, device="cuda")', "x = torch.zeros(2, device=DEVICE_TYPE)"),
        ("x = y.to('cuda:1')", 'x = y.to(f"{DEVICE_TYPE}:1")'),
        ('d = f"cuda:{rank}"; device = f"cuda:{rank}"', 'd = f"cuda:{rank}"; device = f"{DEVICE_TYPE}:{rank}"'),
        ('device = "cuda:" + str(r)', 'device = f"{DEVICE_TYPE}:" + str(r)'),
        ('device = "cuda:%d" % r', 'device = f"{DEVICE_TYPE}:%d" % r'),
        ('device = "cuda:{}".format(r)', 'device = (DEVICE_TYPE + ":{}").format(r)'),
        ("x.cuda()", "x.to(DEVICE_TYPE)"),
        ("x.cuda(1)", 'x.to(f"{DEVICE_TYPE}:1")'),
        ("x.cuda(None, True)", "x.to(DEVICE_TYPE, non_blocking=True)"),
        ("x.cuda(non_blocking=True)", "x.to(DEVICE_TYPE, non_blocking=True)"),
        ("x.cuda(device=None, non_blocking=True)", "x.to(DEVICE_TYPE, non_blocking=True)"),
        ("x.cuda(True, device=0)", "x.cuda(True, device=0)"),
        ("x.cuda(-1)", "x.cuda(-1)"),
        ("x.cuda('cuda:1')", 'x.to(f"{DEVICE_TYPE}:1")'),
        ("x.cuda(torch.device('cuda'))", "x.to(torch.device(DEVICE_TYPE))"),
        ("x.cuda(torch.cuda.current_device())", "x.to(torch.accelerator.current_device_index())"),
        ("(x.half().cuda()).sum()", "(x.half().to(DEVICE_TYPE)).sum()"),
        ("ok = not x.is_cuda", "ok = not (x.device.type == DEVICE_TYPE)"),
        ('ok = x.device.type != "cuda"', "ok = x.device.type != DEVICE_TYPE"),
        ('ok = device in ("cuda", "mps")', 'ok = device in (DEVICE_TYPE, "mps")'),
        ('ok = f(("cuda" in device.type))', "ok = f((DEVICE_TYPE in device.type))"),
        (
            'self.assertEqual(x.device.type, "cuda")',
            "self.assertEqual(x.device.type, DEVICE_TYPE)",
        ),
        ('ok = "cuda" in (device_from, device_to)', "ok = DEVICE_TYPE in (device_from, device_to)"),
        (
            'ok = backend == "nccl"',
            "ok = backend == torch.distributed.get_default_backend_for_device(DEVICE_TYPE)",
        ),
        ('p = patch("torch.cuda.is_available", f)', 'p = patch("torch.accelerator.is_available", f)'),
        ('p = patch("torch.cuda.empty_cache", f)', 'p = patch(f"torch.{DEVICE_TYPE}.empty_cache", f)'),
        (
            "print(f\"{torch.zeros(2, device='cuda')} {torch.cuda.memory_allocated() / 2:.0f}\")",
            'print(f"{torch.zeros(2, device=DEVICE_TYPE)} {DEVICE_MODULE.memory_allocated() / 2:.0f}")',
        ),
        ('ok = device.startswith("cuda")', "ok = device.startswith(DEVICE_TYPE)"),
        ("torch.cuda.is_available()", "torch.accelerator.is_available()"),
        ("torch.cuda.set_device(3)", "torch.accelerator.set_device_index(3)"),
        ("torch.cuda.empty_cache()", "DEVICE_MODULE.empty_cache()"),
        ("s = torch.cuda.Stream()", "s = DEVICE_MODULE.Stream()"),
        ("a = torch.cuda.OutOfMemoryError", "a = torch.OutOfMemoryError"),
        ("with torch.cuda.amp.autocast(True): f()", "with torch.amp.autocast(DEVICE_TYPE, enabled=True): f()"),
        ("s = torch.cuda.amp.GradScaler(init_scale=2.0)", "s = torch.amp.GradScaler(DEVICE_TYPE, init_scale=2.0)"),
        (
            'torch.distributed.init_process_group("nccl")',
            "torch.distributed.init_process_group(torch.distributed.get_default_backend_for_device(DEVICE_TYPE))",
        ),
        ('s = torch.load(p, map_location="cuda:0")', 's = torch.load(p, map_location=f"{DEVICE_TYPE}:0")'),
    ],
)  # fmt: skip
def test_rewritten(before, after):
    assert ported(before) == after


@pytest.mark.parametrize(
    "line",
    [
        "torch.cuda.nvtx.range_push('x')",
        "g = torch.cuda.CUDAGraph()",
        "x = torch.cuda.FloatTensor(3)",
        "n = torch.cuda.utilization()",
        "x.cuda(*devices)",
        "x.cuda(device_of_somebody)",
        "f(torch.cuda)",
        "print(f\"{torch.zeros(2, device='cuda:0')}\")",
        "torch.backends.cudnn.benchmark = True",
        'os.environ["CUDA_VISIBLE_DEVICES"] = "0"',
    ],
)
def test_left_as_it_is_and_reported(line):
    result = port_source(f"{HEAD}\n{line}\n")
    assert result.after == result.before
    assert result.left


def test_unsafe_changes_are_made_on_request_only():
    for line, after in (
        ("x.cuda(rank)", "x.to(rank)"),
        ("n = torch.cuda.utilization()", "n = DEVICE_MODULE.utilization()"),
    ):
        assert port_source(f"{HEAD}{line}\n").unsafe_left == 1
        assert ported(line, unsafe=True) == after


def test_a_name_for_nccl_is_ported_only_where_it_is_a_backend():
    default = "torch.distributed.get_default_backend_for_device(DEVICE_TYPE)"
    head = "from torch.distributed import Backend\n"
    for line, after in (
        ("NCCL = Backend.NCCL", "NCCL = Backend.NCCL"),
        ("names = [Backend.NCCL]", "names = [Backend.NCCL]"),
        ("backend = Backend.NCCL", f"backend = {default}"),
        ("ok = kind == Backend.NCCL", f"ok = kind == {default}"),
        ("f(Backend.NCCL)", f"f({default})"),
    ):
        assert after in port_source(f"{HEAD}{head}{line}\n").after.split("\n")


def test_own_methods_of_the_project_are_left():
    source = f"{HEAD}class A:\n    def cuda(self):\n        return 1\nA().cuda()\n"
    assert port_source(source, own_methods=["cuda"]).after == source
    assert ".to(DEVICE_TYPE)" in port_source(source, own_methods=["cuda"], unsafe=True).after


def test_own_names_of_self_are_never_torchs():
    source = f"{HEAD}class A:\n    def f(self, x):\n        return self.is_cuda, x.is_cuda\n"
    own = port_source(source, own_methods=["is_cuda"], unsafe=True)
    assert "return self.is_cuda, (x.device.type == DEVICE_TYPE)" in own.after
    assert "self.device.type" in port_source(source).after


def test_torch_is_imported_for_tensors_of_others_on_request_only():
    source = "import os\n\ndef f(x):\n    return x.cuda()\n"
    result = port_source(source)
    assert (result.after, result.unsafe_left) == (source, 1)
    after = port_source(source, unsafe=True).after
    assert after == f"import os\nimport torch\n\n{TYPE}\ndef f(x):\n    return x.to(DEVICE_TYPE)\n"
    assert port_source(after, unsafe=True).after == after
    lazy = "import os\ndef f(x):\n    import torch\n    return x.cuda()\n"
    assert port_source(lazy, unsafe=True).after == lazy


def test_imports_of_amp_move_when_all_uses_do():
    source = "import torch\nfrom torch.cuda.amp import (\n    GradScaler,  # scales\n    autocast,\n)\n\nwith autocast():\n    s = GradScaler()\n"
    result = port_source(source)
    assert "from torch.amp import (\n    GradScaler,  # scales\n    autocast,\n)" in result.after
    assert "with autocast(DEVICE_TYPE):\n    s = GradScaler(DEVICE_TYPE)" in result.after
    assert not result.left
    kept = source + "alias = autocast\n"
    assert "from torch.cuda.amp import" in port_source(kept).after


def test_custom_forward_with_and_without_call():
    for decorator, after in (
        ("torch.cuda.amp.custom_fwd", "torch.amp.custom_fwd(device_type=DEVICE_TYPE)"),
        (
            "torch.cuda.amp.custom_fwd(cast_inputs=torch.float32)",
            "torch.amp.custom_fwd(cast_inputs=torch.float32, device_type=DEVICE_TYPE)",
        ),
    ):
        source = (
            f"{HEAD}class A:\n    @staticmethod\n    @{decorator}\n    def forward(ctx): pass\n"
        )
        assert f"    @{after}\n" in port_source(source).after


def test_torch_is_imported_where_only_its_parts_are():
    for line in ("from torch import nn", "import torch.nn as nn"):
        after = port_source(f"{line}\nimport os\nm = nn.Linear(2, 2).cuda()\n").after
        assert (
            after
            == f"{line}\nimport os\nimport torch\n\n{TYPE}\nm = nn.Linear(2, 2).to(DEVICE_TYPE)\n"
        )
        assert port_source(after).after == after


def test_try_is_torch_for_sure_when_its_failure_is_an_error():
    source = "try:\n    import torch\nexcept ImportError as e:\n    raise RuntimeError from e\nx = torch.zeros(2).cuda()\n"
    assert ".to(DEVICE_TYPE)" in port_source(source).after


def test_what_runs_before_the_definitions_is_left():
    source = 'import os\nfirst_device = "cuda"\nimport torch\nx = torch.zeros(2).cuda()\n'
    result = port_source(source)
    assert 'first_device = "cuda"' in result.after
    assert ".to(DEVICE_TYPE)" in result.after
    assert [found.symbol for found in result.left] == ["cuda"]


def test_decorators_of_the_first_function_are_ported():
    source = f'{HEAD}@mark("device", device="cuda")\ndef f(): pass\n'
    assert "device=DEVICE_TYPE" in port_source(source).after


def test_functions_that_torchscript_compiles_are_left():
    left = "    return x.is_cuda\n"
    for source in (
        f"{HEAD}@torch.jit.script\ndef f(x):\n{left}",
        f"{HEAD}def f(x):\n{left}g = torch.jit.script(f)\n",
        f"{HEAD}class A(torch.jit.ScriptModule):\n    @torch.jit.script_method\n    def f(self, x):\n    {left}",
    ):
        result = port_source(source)
        assert result.after == source
        assert result.left
    assert "DEVICE_TYPE" in port_source(f"{HEAD}@torch.jit.unused\ndef f(x):\n{left}").after


def test_imports_from_torch_cuda_become_names_of_the_accelerator():
    source = "# mine\nfrom torch.cuda import empty_cache as empty, is_available\nif is_available():\n    empty()\n"
    result = port_source(source)
    assert result.after == (
        f"# mine\nimport torch\n\n{TYPE}{MODULE}empty = DEVICE_MODULE.empty_cache\n"
        "is_available = torch.accelerator.is_available\nif is_available():\n    empty()\n"
    )
    assert not result.left
    assert port_source(result.after).after == result.after
    other = "import torch\nfrom torch.cuda import is_available, nvtx\n"
    assert port_source(other).after == other


def test_other_words_for_the_device_keep_their_case():
    for line in ('device = "CUDA"', 'ok = device_type() in ["GPU", "CUDA"]'):
        assert ported(line) == line


def test_definitions_stand_behind_the_imports_once():
    source = '"""Text."""\n\nfrom __future__ import annotations\n\n# first\nimport torch\nimport os\n\nx = torch.zeros(2).cuda()\n'
    after = port_source(source).after
    assert after.index("import os") < after.index(TYPE) < after.index("x = ")
    compile(after, "x", "exec")
    more = after + "torch.cuda.empty_cache()\ny = x.cuda()\n"
    again = port_source(more).after
    assert again.count(TYPE) == 1
    assert again.index(TYPE) < again.index(MODULE) < again.index("x = ")


def test_alias_of_torch_is_used():
    after = port_source("import torch as t\nt.cuda.synchronize()\nx = t.zeros(2).cuda()\n").after
    assert "t.accelerator.synchronize()" in after
    assert 'getattr(t.accelerator.current_accelerator(), "type", "cuda")' in after


@pytest.mark.parametrize(
    "source",
    [
        "DEVICE_TYPE = 3\nimport torch\nx = torch.zeros(2).cuda()\n",
        "from torch import nn\ndef f(torch):\n    return nn.Linear(2, 2).cuda()\n",
        "try:\n    import torch\nexcept ImportError:\n    torch = None\ndef f(x):\n    return x.cuda()\n",
        "def f():\n    import torch\n    return torch.zeros(2).cuda()\n",
        'device = "cuda"\n',
    ],
)  # fmt: skip
def test_files_without_room_for_the_names_are_left_whole(source):
    result = port_source(source)
    assert result.after == source
    assert result.left


WORDS = st.sampled_from(
    [
        "cuda",
        "cuda:0",
        "nccl",
        "the cuda card",
        "select cuda from t",
        "a/cuda/b",
        "https://x/cuda",
        "cuda.txt",
        "torch.cuda",
        ".cuda()",
    ]
)
TEXTS = st.one_of(
    WORDS, st.builds("{}{}{}".format, st.text(max_size=5), WORDS, st.text(max_size=5))
)
HARMLESS = st.one_of(
    st.builds("cursor.execute({!r}, ({!r},))".format, TEXTS, TEXTS),
    st.builds("url = {!r} + {!r}".format, TEXTS, TEXTS),
    st.builds("row = {{{!r}: {!r}}}[{!r}]".format, TEXTS, TEXTS, TEXTS),
    st.builds("print({!r})".format, TEXTS),
    st.builds("path = {!r}".format, TEXTS),
    st.builds("query = {!r} + {!r}".format, TEXTS, TEXTS),
    st.builds("open({!r}, 'w')".format, TEXTS),
    st.builds("logging.info({!r}, {!r})".format, TEXTS, TEXTS),
    st.builds("# {}".format, WORDS),
    st.builds('"""{}"""'.format, WORDS),
    st.builds("names = [{!r}, {!r}]".format, WORDS, WORDS),
    st.builds("raise ValueError({!r})".format, TEXTS),
)


@given(st.lists(HARMLESS, max_size=8))
@settings(max_examples=150, deadline=None)
def test_words_that_are_no_devices_are_never_touched(lines):
    source = "import torch\n" + "\n".join(lines) + "\n"
    assert port_source(source, unsafe=True).after == source


@given(st.lists(HARMLESS, max_size=5), st.lists(HARMLESS, max_size=5))
@example(["# cuda"], ["print('cuda')"])
@settings(max_examples=100, deadline=None)
def test_only_the_line_that_depends_on_cuda_changes(before, after):
    source = (
        "\n".join(["import torch", *before, 'x = torch.zeros(2, device="cuda")', *after]) + "\n"
    )
    expected = source.replace('device="cuda")', "device=DEVICE_TYPE)")
    result = port_source(source).after
    kept = [line for line in result.split("\n") if line not in (TYPE.strip(), "")]
    assert kept == [line for line in expected.split("\n") if line]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_port_twice_to_the_same_and_compile(path):
    once = port_source(path.read_text()).after
    compile(once, path.name, "exec")
    assert port_source(once).after == once


def test_own_scan_corpus_stays_valid():
    for path in sorted((Path(__file__).with_name("scan_corpus")).rglob("*.py")):
        text = path.read_text()
        try:
            ast.parse(text)
        except SyntaxError:
            continue
        after = port_source(text, unsafe=True).after
        ast.parse(after)
        assert port_source(after, unsafe=True).after == after, path
