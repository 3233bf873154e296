"""torch.compile and torch.export: programs on the device are captured and compute the same."""

from __future__ import annotations

import io
import tempfile
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.models import MLP, exact_products, gradients, loss_of, mlp, numbers
from cuda_morph_conformance.registry import CheckFailed, check, require
from cuda_morph_conformance.tolerances import PRODUCT, TRAINING, require_close
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from cuda_morph_conformance.subject import Subject

_accelerates = partial(check, level=Level.ACCELERATES, since="1.0", devices=1)
_TRITON = """
import sys, torch, triton, triton.language as tl

@triton.jit
def double(source, target, count, size: tl.constexpr):
    place = tl.program_id(0) * size + tl.arange(0, size)
    inside = place < count
    tl.store(target + place, 2 * tl.load(source + place, mask=inside), mask=inside)

x = torch.arange(100.0, device="cuda")
y = torch.empty_like(x)
double[(4,)](x, y, 100, size=32)
torch.cuda.synchronize()
print("triton", bool((y == 2 * x).all()))
"""


@_accelerates("CM-COMP-001", requires=("compile.dynamo",))
def device_names_are_captured(_subject: Subject) -> None:
    """A function that names the device cuda MUST be captured in one graph and compute the same.

    Fix: tracing calls no adapter code; a graph break names the Python function that it met, which
    then needs ``torch.compiler.allow_in_graph`` or a plain operator.
    """
    import torch

    def function(x: Tensor) -> Tensor:
        y = torch.ones(4, device="cuda") + x.to("cuda")
        return y * torch.zeros(4).cuda().add(2)

    _require_same(function, numbers(4).cuda(), backend="eager")


@_accelerates("CM-COMP-002", requires=("compile.dynamo",))
def questions_are_answered_alike(_subject: Subject) -> None:
    """Questions about devices MUST have the same answers in compiled code as outside it.

    Fix: see which answer differs; compiled code folds them in when it is traced.
    """
    import torch

    def answers(x: Tensor) -> tuple[bool, ...]:
        return (
            x.is_cuda,
            x.device == torch.device("cuda", 0),
            x.device.type == "cuda",
            torch.cuda.is_available(),
            torch.cuda.device_count() > 0,
        )

    x = torch.ones(2, device="cuda")
    with _clean():
        compiled = torch.compile(answers, backend="eager")(x)
    require(compiled == answers(x), f"compiled {compiled}, otherwise {answers(x)}")


@_accelerates("CM-COMP-003", requires=("compile.dynamo",))
def models_are_traced_by_aot(_subject: Subject) -> None:
    """A model compiled with aot_eager MUST give the results of the model itself.

    Fix: each operator of the device needs a meta kernel; PyTorch has them for its own operators.
    """
    model = mlp().cuda()
    _require_same(model, MLP.inputs().cuda(), backend="aot_eager")


@_accelerates("CM-COMP-004", requires=("compile.dynamo",))
def code_is_compiled_once(_subject: Subject) -> None:
    """Calling compiled code again with tensors of the same kind MUST NOT compile it again.

    Fix: guards compare devices and streams; objects that the adapter makes anew for every question
    must be equal to each other.
    """
    import torch
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    with _clean():
        compiled = torch.compile(lambda x: (x * 2).to("cuda").sum(), backend=counter)
        for seed in range(4):
            compiled(numbers(8, seed=seed).cuda())
    require(counter.frame_count == 1, f"it was compiled {counter.frame_count} times")


@_accelerates("CM-COMP-005", requires=("compile.dynamo", "amp.autocast"))
def autocast_is_captured(_subject: Subject) -> None:
    """Autocast for cuda inside compiled code MUST give the dtypes that it gives outside.

    Fix: see CM-AMP-001; tracing takes dtypes from the autocast kernels of the device.
    """
    import torch

    def function(x: Tensor) -> Tensor:
        with torch.autocast("cuda"):
            return x @ x

    x = numbers(4, 4).cuda()
    with _clean():
        compiled = torch.compile(function, backend="aot_eager", fullgraph=True)(x)
    require(compiled.dtype == function(x).dtype, f"compiled code gives {compiled.dtype}")


@_accelerates("CM-COMP-006", requires=("compile.dynamic_shapes",))
def shapes_may_change(_subject: Subject) -> None:
    """Code compiled with dynamic=True MUST serve several lengths with one compilation.

    Fix: meta kernels of the adapter's operators must not read sizes as plain integers.
    """
    import torch
    from torch._dynamo.testing import CompileCounterWithBackend

    counter = CompileCounterWithBackend("aot_eager")

    def function(x: Tensor) -> Tensor:
        return torch.softmax(x @ x.T, dim=-1).sum(dim=0)

    with _clean(), exact_products():
        compiled = torch.compile(function, backend=counter, dynamic=True)
        for length in (5, 7, 12):
            x = numbers(length, 4).cuda()
            require_close(compiled(x), function(x), f"length {length}", kind=PRODUCT)
    require(counter.frame_count == 1, f"it was compiled {counter.frame_count} times")


@_accelerates("CM-COMP-007", requires=("compile.training",))
def backward_is_compiled(_subject: Subject) -> None:
    """Gradients through a model compiled with aot_eager MUST be those of the CPU.

    Fix: see CM-GRAD-001 first; what differs only here is a meta kernel of a backward operator.
    """
    import torch

    reference, model = mlp(), mlp().cuda()
    with _clean(), exact_products():
        loss_of(reference(MLP.inputs()), MLP.targets()).backward()
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        loss_of(compiled(MLP.inputs().cuda()), MLP.targets().cuda()).backward()
    expected = gradients(reference)
    for name, value in gradients(model).items():
        what = f"gradient of {name}"
        require_close(value, expected[name], what, kind=PRODUCT, dtype="float32")


@_accelerates("CM-COMP-010", requires=("compile.inductor",))
def inductor_compiles(_subject: Subject) -> None:
    """torch.compile with its default backend MUST compile for the device and compute the same.

    Fix: register a code generator with ``register_backend_for_device`` of ``torch._inductor``, or
    claim not_yet.
    """
    import torch

    def function(x: Tensor) -> Tensor:
        return (torch.nn.functional.gelu(x) * 2 + x.sin()).sum(dim=-1)

    _require_same(function, numbers(8, 16).cuda(), backend="inductor")


@_accelerates("CM-COMP-011", requires=("compile.inductor", "compile.training"))
def inductor_trains(_subject: Subject) -> None:
    """Steps of a model compiled with the default backend MUST be those of the model itself.

    Fix: see CM-COMP-010, then compare compiled forward and backward one by one.
    """
    import torch

    losses = []
    for compiling in (False, True):
        model = mlp().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        inputs, targets = MLP.inputs().cuda(), MLP.targets().cuda()
        with _clean(), exact_products():
            forward = torch.compile(model) if compiling else model
            for _ in range(3):
                optimizer.zero_grad()
                loss = loss_of(forward(inputs), targets)
                loss.backward()
                optimizer.step()
        losses.append(loss.detach())
    require_close(losses[1], losses[0], "the third loss", kind=TRAINING)


@_accelerates("CM-COMP-012", requires=("compile.inductor",))
def inductor_generates_code(_subject: Subject) -> None:
    """What torch.compile makes with its default backend MUST be code, not operators one by one.

    Fix: let a backend that cannot compile raise, or claim not_yet; see CM-COMP-010.
    """
    import torch
    import torch._inductor.config
    from torch._inductor import metrics

    def function(x: Tensor) -> Tensor:
        return (x.cos() * 3 + x.sin()).sum(dim=-1)

    # What was compiled before comes from a cache, and is not generated again.
    with torch._inductor.config.patch(fx_graph_cache=False):
        metrics.reset()
        _require_same(function, numbers(8, 24).cuda(), backend="inductor")
    require(metrics.generated_kernel_count > 0, "no kernel was generated")


@_accelerates("CM-COMP-020", requires=("compile.export",))
def models_are_exported(_subject: Subject) -> None:
    """torch.export MUST capture a model on the device, and the program compute the same.

    Fix: meta kernels of the adapter's operators must exist and keep the device.
    """
    import torch

    model, inputs = mlp().cuda().eval(), MLP.inputs().cuda()
    with _clean(), exact_products(), torch.no_grad():
        program = torch.export.export(model, (inputs,))
        seen, expected = program.module()(inputs), model(inputs)
    require(seen.is_cuda, f"the exported program computes on {seen.device}")
    require_close(seen, expected, "the exported program", kind=PRODUCT)


@_accelerates("CM-COMP-021", requires=("compile.export", "io.save", "io.load"))
def exported_programs_survive(_subject: Subject) -> None:
    """An exported program MUST come back from its file with its weights on the device.

    Fix: see CM-IO-001; the file holds weights and the name of their device.
    """
    import torch

    model, inputs = mlp().cuda().eval(), MLP.inputs().cuda()
    file = io.BytesIO()
    with _clean(), exact_products(), torch.no_grad():
        torch.export.save(torch.export.export(model, (inputs,)), file)
        file.seek(0)
        program = torch.export.load(file)
        require_close(program.module()(inputs), model(inputs), "the loaded program", kind=PRODUCT)


@_accelerates("CM-COMP-022", requires=("compile.aot",), views=("cuda",))
def programs_are_compiled_ahead(_subject: Subject) -> None:
    """A program compiled ahead of time into a package MUST run from it and compute the same.

    Fix: support AOTInductor in the device's code generator, or claim not_yet.
    """
    import torch

    class Scaled(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Tensor) -> Tensor:
            return x.sin() * 2

    x = numbers(8).cuda()
    with _clean(), tempfile.TemporaryDirectory() as folder, torch.no_grad():
        program = torch.export.export(Scaled(), (x,))
        path = str(Path(folder, "scaled.pt2"))
        torch._inductor.aoti_compile_and_package(program, package_path=path)
        seen = torch._inductor.aoti_load_package(path)(x)
        require(seen.is_cuda, f"the package computes on {seen.device}")
        require_close(seen, numbers(8).sin() * 2, "the package", kind=PRODUCT)


@_accelerates("CM-COMP-030", requires=("compile.triton",), views=("cuda",))
def triton_kernels_run(subject: Subject) -> None:
    """A Triton kernel launched on device tensors MUST run and write the right numbers.

    Fix: install the vendor's Triton with its driver active, or claim not_yet or never.
    """
    if find_spec("triton") is None:
        raise CheckFailed("triton is not installed, so no kernel can run")
    ended = subject.run_program(_TRITON)
    output = (ended.stdout + ended.stderr)[-600:]
    require("triton True" in ended.stdout, f"exit code {ended.returncode}: {output}")


@contextmanager
def _clean() -> Iterator[None]:
    """Forgets compiled code before and after the block."""
    import torch

    torch._dynamo.reset()
    try:
        yield
    finally:
        torch._dynamo.reset()


def _require_same(function: Any, x: Tensor, *, backend: str) -> None:
    import torch

    with _clean(), exact_products(), torch.no_grad():
        expected = function(x)
        seen = torch.compile(function, backend=backend, fullgraph=True)(x)
    require(seen.is_cuda, f"compiled code gives a tensor on {seen.device}")
    require_close(seen, expected, f"compiled by {backend}", kind=PRODUCT)
