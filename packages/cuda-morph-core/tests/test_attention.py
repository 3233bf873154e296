"""flash_attn's functions under an active backend: each cell is one process with all its checks."""

from __future__ import annotations

import ast
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("cuda_morph_conformance")

PROGRAMS = Path(__file__).parent / "attention_programs"
GRID, REST = ("dense_grid",), ("surface", "packed_and_cached")
CELLS = (
    ("sim", "cuda", GRID),
    ("sim", "cuda", REST),
    ("sim", "native", REST),
    ("cpu", "native", REST),
    ("cpu", "cuda", GRID),
)


def checks_of(program: str) -> list[str]:
    body = ast.parse((PROGRAMS / f"{program}.py").read_text()).body
    names = [node.name for node in body if isinstance(node, ast.FunctionDef)]
    return [f"{program}.{name}" for name in names if name.startswith("check_")]


def python(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_MORPH")}
    kept = {name: value for name, value in os.environ.items() if name == "CUDA_MORPH_SIM_CACHE"}
    return subprocess.run(
        [sys.executable, *arguments],
        env=clean | kept | {"OMP_NUM_THREADS": "1"} | variables,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@functools.cache
def simulated() -> str:
    """Returns why there is no simulated device here, or an empty string."""
    from cuda_morph import plugins

    row = plugins.get_plugin("sim", detect=True)
    return "" if row.status.value == "ready" else row.reason


@functools.cache
def outcomes(backend: str, view: str, programs: tuple[str, ...]) -> tuple[dict[str, str], str]:
    script = str(PROGRAMS / "checks.py")
    done = python(script, backend, view, *programs)
    rows = [
        json.loads(line.removeprefix("CHECK "))
        for line in done.stdout.splitlines()
        if line.startswith("CHECK ")
    ]
    return {row["check"]: row["error"] for row in rows}, done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "view", "programs", "check"),
    [
        pytest.param(
            backend,
            view,
            programs,
            check,
            id=f"{backend}-{view}-{check}",
            marks=[pytest.mark.long] if programs is GRID else [],
        )
        for backend, view, programs in CELLS
        for program in programs
        for check in checks_of(program)
    ],
)
def test_flash_attn(backend: str, view: str, programs: tuple[str, ...], check: str) -> None:
    if backend == "sim" and simulated():
        pytest.skip(simulated())
    errors, ending = outcomes(backend, view, programs)
    error = errors.get(check, f"was not reached; the process ended so:\n{ending}")
    if error:
        pytest.fail(error, pytrace=False)


MODELS = ("models",)


@pytest.mark.long
@pytest.mark.parametrize(
    ("backend", "view"), [("sim", "cuda"), ("sim", "native"), ("cpu", "native")]
)
@pytest.mark.parametrize("check", checks_of("models"))
def test_models_of_transformers(backend: str, view: str, check: str) -> None:
    pytest.importorskip("transformers")
    if backend == "sim" and simulated():
        pytest.skip(simulated())
    errors, ending = outcomes(backend, view, MODELS)
    error = errors.get(check, f"was not reached; the process ended so:\n{ending}")
    if error:
        pytest.fail(error, pytrace=False)


def test_transformers_is_left_as_it_was() -> None:
    pytest.importorskip("transformers")
    program = """
import sys, cuda_morph, torch
import transformers.modeling_flash_attention_utils as flash
from transformers.modeling_utils import AttentionInterface
from transformers.utils import is_flash_attn_2_available as check
finders = list(sys.meta_path)
def state():
    row = flash.FLASH_ATTENTION_COMPATIBILITY_MATRIX[2]
    return check(), "cuda_morph" in AttentionInterface().keys(), len(row["supported_devices"])
before = state()
for view in ("native", "cuda"):
    with cuda_morph.activate("cpu", view=view):
        print(state()[:2], state()[2] - before[2])
    print(state() == before, sys.meta_path == finders, check.__wrapped__.__code__.co_filename[-15:])
"""
    during, after = "(True, True) 1", "True True import_utils.py"
    assert lines(python("-c", program)) == [during, after] * 2


def test_nothing_of_transformers_is_imported_by_an_activation() -> None:
    program = """
import sys, cuda_morph
with cuda_morph.activate("cpu"):
    print([name for name in ("transformers", "flash_attn") if name in sys.modules])
    print([name for name in sys.modules if name.startswith("cuda_morph.ecosystem.attention.")])
"""
    assert lines(python("-c", program)) == ["[]", "[]"]


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def test_the_stand_in_goes_with_the_activation() -> None:
    program = """
import importlib.metadata as metadata, importlib.util, sys, cuda_morph
finders = list(sys.meta_path)
for view in ("native", "cuda"):
    with cuda_morph.activate("cpu", view=view):
        print("flash_attn" in sys.modules, importlib.util.find_spec("flash_attn") is not None)
        import flash_attn.losses.cross_entropy
    print(sys.meta_path == finders, [name for name in sys.modules if "flash_attn" in name.split(".")[0]])
    try:
        metadata.version("flash_attn")
    except metadata.PackageNotFoundError:
        print("no metadata", importlib.util.find_spec("flash_attn"))
"""
    assert lines(python("-c", program)) == ["False True", "True []", "no metadata None"] * 2


REAL = {
    "flash_attn/__init__.py": "__version__ = '2.6.3'\ndef flash_attn_func(*a): return 'real'\n",
    "flash_attn-2.6.3.dist-info/METADATA": "Metadata-Version: 2.1\nName: flash-attn\nVersion: 2.6.3\n",
    "flash_attn-2.6.3.dist-info/top_level.txt": "flash_attn\n",
}


def written(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(folder)


def test_a_real_flash_attn_is_never_shadowed(tmp_path: Path) -> None:
    program = """
import importlib.metadata as metadata, sys, cuda_morph
with cuda_morph.activate("cpu"):
    import flash_attn
    print(flash_attn.flash_attn_func(), flash_attn.__version__, metadata.version("flash_attn"))
    print(metadata.packages_distributions()["flash_attn"])
print("flash_attn" in sys.modules)
"""
    done = python("-c", program, PYTHONPATH=written(tmp_path, REAL))
    assert lines(done) == ["real 2.6.3 2.6.3", "['flash-attn']", "True"]


def test_a_real_flash_attn_that_fails_is_not_replaced(tmp_path: Path) -> None:
    broken = {"flash_attn/__init__.py": "import flash_attn_2_cuda\n"}
    program = """
import cuda_morph
with cuda_morph.activate("cpu"):
    try:
        import flash_attn
    except ImportError as error:
        print(error)
"""
    done = python("-c", program, PYTHONPATH=written(tmp_path, broken))
    assert lines(done) == ["No module named 'flash_attn_2_cuda'"]


def test_a_namespace_of_flash_attn_4_stays_reachable(tmp_path: Path) -> None:
    cute = {"flash_attn/cute/__init__.py": "name = 'cute'\n"}
    program = """
import cuda_morph
with cuda_morph.activate("cpu"):
    import flash_attn, flash_attn.cute
    print(flash_attn.cute.name, flash_attn.__version__)
"""
    done = python("-c", program, PYTHONPATH=written(tmp_path, cute))
    assert lines(done) == ["cute 2.8.4+cuda.morph"]


def test_kernels_are_chosen_by_what_they_cover() -> None:
    program = """
import cuda_morph, torch
from cuda_morph.ecosystem.attention import kernels, attend, answered, Options
from cuda_morph.records import AttentionKernel
calls = []
def make(name, **fields):
    def forward(q, k, v, **options):
        calls.append((name, tuple(q.shape), sorted(options)))
        if name == "shy":
            raise NotImplementedError
        return torch.zeros_like(q)
    return AttentionKernel(name=name, forward=forward, **fields)
with cuda_morph.activate("cpu"):
    kernels.OFFER._kernels = (
        make("shy", dtypes=("float32",), features=("causal",)),
        make("narrow", dtypes=("float16",)),
        make("heads_first", dtypes=("float32",), layouts=("bhsd",), max_head_dim=8),
        make("masked", dtypes=("float32",), head_dims=(16,), mask_convention="true_masks",
             features=("mask", "empty_rows")),
    )
    def go(dtype=torch.float32, dim=8, grad=False, **options):
        q = torch.ones(1, 2, 3, dim, dtype=dtype, requires_grad=grad)
        calls.clear()
        out, _ = attend(q, q, q, Options(scale=1.0, **options))
        print(*calls, tuple(out.shape), float(out.detach().sum()) == 0)
    go()
    go(dtype=torch.float16)
    go(grad=True)
    go(causal=True)
    go(dim=16)
    go(dim=16, mask=torch.ones(2, 2, dtype=torch.bool))
    print(answered())
"""
    assert lines(python("-c", program)) == [
        "('shy', (1, 2, 3, 8), ['scale']) ('heads_first', (1, 3, 2, 8), ['scale']) (1, 2, 3, 8) True",
        "('narrow', (1, 2, 3, 8), ['scale']) (1, 2, 3, 8) True",
        "(1, 2, 3, 8) False",
        "('shy', (1, 2, 3, 8), ['causal', 'scale']) (1, 2, 3, 8) False",
        "('shy', (1, 2, 3, 16), ['scale']) ('masked', (1, 2, 3, 16), ['scale']) (1, 2, 3, 16) True",
        "('masked', (1, 2, 3, 16), ['mask', 'scale']) (1, 2, 3, 16) True",
        "{'heads_first.forward': 1, 'narrow.forward': 1, 'sdpa': 2, 'masked.forward': 2}",
    ]
