"""Processes and threads: what a program starts sees the accelerator as the program does."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

from cuda_morph_conformance.models import MLP, exact_products, gradients, loss_of, mlp, numbers
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.tolerances import PRODUCT, require_close
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from torch import Tensor

    from cuda_morph_conformance.subject import Subject

_runs = partial(check, level=Level.RUNS, since="1.0", devices=1)
_TAIL = 600

_STARTS_PYTHON = """
import subprocess, sys, torch
ask = "import torch; x = torch.ones(2).cuda(); print(x.is_cuda, x.device, x.sum().item())"
exec(ask, {"print": lambda *answer: print("here", *answer, flush=True)})
child = subprocess.run([sys.executable, "-c", ask], stdout=subprocess.PIPE, text=True)
print("child", child.stdout.strip())
"""

_SPAWNS = """
import torch, torch.multiprocessing as mp

def work(rank, results):
    results.put((rank, torch.full((2,), 1.5, device="cuda").sum().item()))

if __name__ == "__main__":
    context = mp.get_context("spawn")
    results = context.Queue()
    mp.spawn(work, (results,), nprocs=1)
    print("spawned", results.get())
"""

_FORKS = """
import os, torch
x = torch.ones(4, device="cuda")
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    os.write(writer, str(torch.arange(4.0).sum().item()).encode())
    os._exit(0)
os.waitpid(child, 0)
print("fork says", os.read(reader, 100).decode(), (x + 1).sum().item())
"""

_RANK = """
import os, torch
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
x = torch.ones(2, device="cuda")
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], x.is_cuda, x.sum().item())
"""

_ENDS = """
import sys, torch
x = torch.ones(2, device="cuda")
print(__name__, sys.argv[1:], flush=True)
if sys.argv[1] == "exit":
    sys.exit(7)
def inner():
    raise ValueError("of the program")
inner()
"""

_PLAIN = """
import os, torch, cuda_morph
print("plain", cuda_morph.is_active(), "CUDA_MORPH_INHERIT" in os.environ)
"""


@_runs("CM-PROC-001", requires=("load.inheritance",))
def started_interpreters_inherit(subject: Subject) -> None:
    """A Python process that the program starts MUST see the same accelerator and the same view.

    Fix: nothing of the plugin may depend on who imports torch first; children activate at the end
    of ``import torch``, so the adapter must not be imported by ``torch.backends`` itself.
    """
    ended = _succeeded(subject.run_program(_STARTS_PYTHON))
    said = dict(line.partition(" ")[::2] for line in ended.stdout.splitlines())
    require(said.get("here", "").startswith("True "), ended.stdout[-_TAIL:])
    require(said.get("child") == said.get("here"), ended.stdout[-_TAIL:])


@_runs("CM-PROC-002", requires=("load.inheritance",), views=("cuda",))
def spawned_workers_inherit(subject: Subject) -> None:
    """Processes of torch.multiprocessing.spawn MUST use the accelerator.

    Fix: let the adapter initialise in every process by itself, without state in the environment
    that belongs to the parent.
    """
    ended = _succeeded(subject.run_program(_SPAWNS))
    require("spawned (0, 3.0)" in ended.stdout, ended.stdout[-_TAIL:])


@_runs("CM-PROC-003", views=("cuda",))
def forks_keep_both_sides_usable(subject: Subject) -> None:
    """After a fork the child MUST compute on the CPU, and the parent on the device.

    Fix: register ``pthread_atfork`` handlers that touch no driver state in the child.
    """
    ended = _succeeded(subject.run_program(_FORKS))
    require("fork says 6.0 8.0" in ended.stdout, ended.stdout[-_TAIL:])


@_runs("CM-PROC-004", requires=("dist.launch",), views=("cuda",))
def launched_ranks_are_active(subject: Subject) -> None:
    """A rank that torchrun starts MUST use the accelerator of its LOCAL_RANK.

    Fix: see CM-PROC-001; torchrun starts ranks as children of the launched process.
    """
    ended = _succeeded(subject.run_program(_RANK, ranks=1))
    require("rank 0 of 1 True 2.0" in ended.stdout, ended.stdout[-_TAIL:])


@_runs("CM-PROC-005", views=("cuda",))
def programs_end_as_under_python(subject: Subject) -> None:
    """Exit codes, arguments and tracebacks of a program MUST be those that plain Python gives.

    Fix: let no atexit handler or destructor of the adapter change the exit code or print.
    """
    ended = subject.run_program(_ENDS, args=["exit", "--flag"])
    require(ended.returncode == 7, f"exit code {ended.returncode} instead of 7")  # noqa: PLR2004
    said = "__main__ ['exit', '--flag']"
    require(said in ended.stdout, f"the program saw {ended.stdout!r}")
    failed = subject.run_program(_ENDS, args=["raise"])
    require(failed.returncode == 1, f"exit code {failed.returncode} after an exception")
    trace = failed.stderr.partition("Traceback")[2]
    require("ValueError: of the program" in trace, f"the traceback is lost: {failed.stderr!r}")
    require("cuda_morph" not in trace, f"the traceback shows the launcher: {trace[:_TAIL]}")


@_runs("CM-PROC-006", views=())
def other_processes_are_left_alone(subject: Subject) -> None:
    """A process that nobody activated MUST NOT be active, whatever is installed.

    Fix: remove what activates at import: a ``.pth`` file, ``sitecustomize``, an entry point.
    """
    ended = _succeeded(subject.run_program(_PLAIN, shim=False))
    require("plain False False" in ended.stdout, ended.stdout[-_TAIL:])


@_runs("CM-PROC-010")
def threads_compute_at_once(_subject: Subject) -> None:
    """Threads that compute on the device at the same time MUST each get right results.

    Fix: make the allocator and the stream pool safe for threads, and keep the current device and
    stream a thread's own.
    """
    import torch

    failures: list[str] = []

    def work(seed: int) -> None:
        x = numbers(32, 32, seed=seed)
        for _ in range(5):
            seen = (x.cuda() * 2 + 1).sum(dim=0)
            wrong = not torch.allclose(seen.cpu(), (x * 2 + 1).sum(dim=0), atol=1e-4)
            if wrong or torch.cuda.current_device() != 0:
                failures.append(f"thread {seed}")

    _run_threads([partial(work, seed) for seed in range(4)])
    require(not failures, f"wrong results in {sorted(set(failures))}")


@check("CM-PROC-011", level=Level.TRAINS, requires=("autograd.backward",), since="1.0", devices=1)
def threads_train_at_once(_subject: Subject) -> None:
    """Backward passes that run in several threads at once MUST each give the right gradients.

    Fix: autograd has one thread per device for all callers; kernels must run on the stream that
    was current in the forward pass.
    """
    found: dict[int, dict[str, Tensor]] = {}

    def work(place: str, key: int) -> None:
        model = mlp().to(place)
        loss_of(model(MLP.inputs().to(place)), MLP.targets().to(place)).backward()
        found[key] = gradients(model)

    with exact_products():
        work("cpu", -1)
        _run_threads([partial(work, "cuda", key) for key in range(3)])
    require(len(found) == 4, f"only threads {sorted(found)} came to an end")  # noqa: PLR2004
    for key in range(3):
        for name, value in found[key].items():
            what = f"gradient of {name} in thread {key}"
            require_close(value, found[-1][name], what, kind=PRODUCT, dtype="float32")


def _run_threads(works: list[partial[None]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _succeeded(ended: CompletedProcess[str]) -> CompletedProcess[str]:
    output = (ended.stdout + ended.stderr)[-_TAIL:]
    require(ended.returncode == 0, f"exit code {ended.returncode}: {output}")
    return ended
