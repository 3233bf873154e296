"""Builds the simulated device's C++ half at first use and keeps it for the next time."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph.errors import MorphError, TorchMissingError
from cuda_morph_sim import toolchain
from cuda_morph_sim.settings import CACHE_VARIABLE, cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SOURCES = Path(__file__).parent / "csrc"

UNITS: dict[str, tuple[str, ...]] = {
    "distributed": ("collective_work", "process_group", "collectives"),
    "whole_aten": (
        "autocast",
        "layout_alias",
        "recurrent_kernels",
        "attention_kernels",
        "autograd_threads",
    ),
    "dispatcher": (
        "call_plan",
        "call_frame",
        "fallback",
        "registration",
        "memory_kernels",
        "half_math",
        "adapter_limits",
    ),
    "device": (
        "device_state",
        "memory",
        "guarded_memory",
        "host_block",
        "tensor_alias",
        "allocator",
        "pinned_memory",
        "generator",
        "hooks",
        "streams",
        "profiler",
        "device_argument",
        "memory_functions",
        "module",
    ),
}
"""Files that are compiled together: reading PyTorch's headers is most of the work, so files that
need the same ones share them. The longest unit comes first."""

FLAGS = ("-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-w")
LIBRARIES = ("-ltorch_python", "-ltorch_cpu", "-lc10")
COMPILER_HINT = "Install one (for example `apt install g++`)."
HEADERS_HINT = "Install them (for example `apt install python3-dev`)."
CPU_HINT = "Use the cpu fallback instead: `cuda-morph run --backend cpu` or activate('cpu')."


def source_digest() -> str:
    """Digest of everything that decides what the build gives.

    Returns:
        Twelve hexadecimal digits over the sources, the units and the flags.
    """
    digest = hashlib.sha256(repr((UNITS, FLAGS, LIBRARIES)).encode())
    for path in sorted(SOURCES.iterdir()):
        if path.suffix in {".cpp", ".h"}:
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def library_path(torch_version: str) -> Path:
    """Where the built device for one PyTorch version lies, or will lie.

    Args:
        torch_version: The full version, e.g. ``2.13.0+cpu``.

    Returns:
        The path of the shared library in the cache folder.
    """
    name = f"torch-{torch_version}-{toolchain.python_abi()}-{source_digest()}"
    return cache_folder() / name / "_native.so"


def ensure_built() -> Path:
    """Build the device unless a build for the present PyTorch is there.

    Returns:
        The path of the shared library.

    Raises:
        TorchMissingError: PyTorch is not installed.
        MorphError: ``CM-E12``: no compiler, or compiling failed.
    """
    torch = toolchain.find_torch()
    if torch is None:
        raise TorchMissingError(
            "The simulated device needs PyTorch, which is not installed.",
            hint="pip install torch",
        )
    target = library_path(torch.version)
    if target.is_file():
        return target
    compiler, python_headers = _tools()
    with _locked(target.parent):
        # Another process may have built it while this one waited.
        if not target.is_file():
            short = torch.version.partition("+")[0]
            sys.stderr.write(
                f"cuda-morph-sim: building the simulated device for torch {short} "
                "(about 15 s, once) ...\n"
            )
            sys.stderr.flush()
            _build(target, compiler, _include_flags(torch.folder, python_headers), torch.folder)
    return target


def _tools() -> tuple[list[str], Path]:
    compiler = toolchain.find_compiler()
    if compiler is None:
        wanted = os.environ.get("CXX") or " or ".join(toolchain.COMPILERS)
        raise MorphError(
            f"The simulated device is built at first use and no C++ compiler was found ({wanted}).",
            hint=f"{COMPILER_HINT} {CPU_HINT}",
            code="CM-E12",
        )
    headers = toolchain.find_python_headers()
    if headers is None:
        raise MorphError(
            "The simulated device is built at first use and Python's headers (Python.h) are "
            "missing.",
            hint=f"{HEADERS_HINT} {CPU_HINT}",
            code="CM-E12",
        )
    return compiler, headers


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    import filelock

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder.with_name(folder.name + ".lock"))
        lock.acquire()
    except OSError as error:
        raise MorphError(
            f"The simulated device cannot be kept in {folder.parent}: {error}.",
            hint=f"Set {CACHE_VARIABLE} to a folder that can be written. {CPU_HINT}",
            code="CM-E12",
        ) from error
    try:
        yield
    finally:
        lock.release()


def _include_flags(torch_folder: Path, python_headers: Path) -> list[str]:
    include = torch_folder / "include"
    folders = (SOURCES, include, include / "torch/csrc/api/include", python_headers)
    return [f"-I{folder}" for folder in folders]


def _build(
    target: Path, compiler: Sequence[str], includes: Sequence[str], torch_folder: Path
) -> None:
    # Built beside its final place and moved there whole: a half-written library is never seen.
    work = Path(tempfile.mkdtemp(prefix="build-", dir=target.parent.parent))
    try:
        with ThreadPoolExecutor(max_workers=min(len(UNITS), os.cpu_count() or 1)) as pool:
            objects = list(pool.map(lambda unit: _compile(unit, work, compiler, includes), UNITS))
        library = work / "_native.so"
        _run(
            [
                *compiler,
                "-shared",
                *map(str, objects),
                f"-L{torch_folder / 'lib'}",
                *LIBRARIES,
                "-o",
                str(library),
            ],
            target.parent.parent,
        )
        target.parent.mkdir(exist_ok=True)
        library.replace(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _compile(unit: str, work: Path, compiler: Sequence[str], includes: Sequence[str]) -> Path:
    source = work / f"{unit}.cpp"
    source.write_text("".join(f'#include "{name}.cpp"\n' for name in UNITS[unit]))
    result = source.with_suffix(".o")
    _run([*compiler, *FLAGS, *includes, "-c", str(source), "-o", str(result)], work.parent)
    return result


def _run(command: Sequence[str], log_folder: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        log = log_folder / "build-failure.log"
        log.write_text(" ".join(command) + "\n\n" + done.stdout + done.stderr)
        raise MorphError(
            f"Compiling the simulated device failed; the compiler's output is in {log}.",
            hint=CPU_HINT,
            code="CM-E12",
        )
