"""Extensions: own operators for cuda, and C++ that is built for the device."""

from __future__ import annotations

import re
import sys
import tempfile
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph_conformance.models import numbers
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.tolerances import require_close
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from typing import Any

    from torch import Tensor

    from cuda_morph_conformance.subject import Subject

_runs = partial(check, level=Level.RUNS, since="1.0", devices=1)
_accelerates = partial(check, level=Level.ACCELERATES, since="1.0", devices=1, views=("cuda",))
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(::[A-Za-z_][A-Za-z0-9_]*)*")
_USUAL = ("cudaMalloc", "cudaFree", "cudaMemcpy", "cudaStream_t", "cudaError_t", "cudaSuccess")
_SOURCE = """
#include <torch/library.h>
#include <ATen/ops/mul.h>
static at::Tensor triple(const at::Tensor& x) { return at::mul(x, 3); }
TORCH_LIBRARY_FRAGMENT(%s, library) { library.def("triple(Tensor x) -> Tensor", &triple); }
"""


@_runs("CM-EXT-001", requires=("ext.custom_op",))
def custom_operators_run(subject: Subject) -> None:
    """An operator of torch.library.custom_op for device_types="cuda" MUST run on device tensors.

    Fix: see that the dispatch key of the device is the one that ``torch.library`` derives from the
    type that tensors of the device have.
    """
    import torch

    name = f"cm_ext_{subject.view}::triple"

    own = partial(torch.library.custom_op, name, mutates_args=(), schema="(Tensor x) -> Tensor")

    @own(device_types="cuda")  # type: ignore[untyped-decorator]
    def triple(x: Tensor) -> Tensor:
        return x * 3

    x = numbers(4).cuda()
    require_close(triple(x), 3 * numbers(4), "the operator")
    require_close(getattr(torch.ops, f"cm_ext_{subject.view}").triple(x), 3 * numbers(4), "by name")


@_runs("CM-EXT-002", requires=("ext.custom_op",))
def dispatch_key_cuda_is_understood(subject: Subject) -> None:
    """An operator registered with Library.impl for the key CUDA MUST run on device tensors.

    Fix: leave ``torch.library`` alone; core maps the key to the device's.
    """
    import torch

    space = f"cm_ext_key_{subject.view}"
    library = torch.library.Library(space, "FRAGMENT")
    library.define("shift(Tensor x, float by) -> Tensor")
    library.impl("shift", lambda x, by: x + by, "CUDA")
    try:
        seen = getattr(torch.ops, space).shift(numbers(4).cuda(), 2.0)
        require(seen.is_cuda, f"the result is on {seen.device}")
        require_close(seen, numbers(4) + 2, "the operator")
    finally:
        library._destroy()


@_runs("CM-EXT-003", requires=("ext.custom_op", "autograd.backward"))
def custom_operators_have_gradients(subject: Subject) -> None:
    """register_autograd and register_fake of an operator for cuda MUST serve device tensors.

    Fix: see CM-EXT-001; the derivative is looked up under the device's autograd key.
    """
    import torch

    name = f"cm_ext_grad_{subject.view}::square"

    own = partial(torch.library.custom_op, name, mutates_args=(), schema="(Tensor x) -> Tensor")

    @own(device_types="cuda")  # type: ignore[untyped-decorator]
    def square(x: Tensor) -> Tensor:
        return x * x

    square.register_fake(torch.empty_like)
    square.register_autograd(
        lambda ctx, gradient: 2 * ctx.saved_tensors[0] * gradient,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),  # noqa: ARG005
    )
    x = numbers(4).cuda().requires_grad_()
    square(x).sum().backward()
    require(x.grad is not None, "no gradient arrived")
    require_close(x.grad, 2 * numbers(4), "the gradient")


@_accelerates("CM-EXT-010", requires=("ext.build",))
def extensions_are_built(_subject: Subject) -> None:
    """CUDAExtension MUST describe an extension for the device, with its compiler and libraries.

    Fix: implement ``cuda_morph_extension_toolchain`` and name the vendor's extension class.
    """
    import torch
    from torch.utils.cpp_extension import CUDAExtension

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "triple.cpp")
        source.write_text(_SOURCE % "cm_ext_built", encoding="utf-8")
        extension = CUDAExtension("cm_ext_built", [str(source)])
    require(extension.sources, "the extension has no sources")
    require(extension.include_dirs, "the extension has no include directories")
    require(torch.cuda.device_count() > 0, "the device is gone")


@_accelerates("CM-EXT-011", requires=("ext.load",))
def extensions_are_loaded(_subject: Subject) -> None:
    """cpp_extension.load with with_cuda=True MUST build an operator that runs on the device.

    Fix: see CM-EXT-010; the loader takes compiler, flags and libraries from the toolchain.
    """
    import torch
    from torch.utils.cpp_extension import load

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "triple.cpp")
        source.write_text(_SOURCE % "cm_ext_loaded", encoding="utf-8")
        load(
            "cm_ext_loaded",
            [str(source)],
            build_directory=folder,
            with_cuda=True,
            is_python_module=False,
        )
        seen = torch.ops.cm_ext_loaded.triple(numbers(4).cuda())
    require(seen.is_cuda, f"the result is on {seen.device}")
    require_close(seen, 3 * numbers(4), "the operator")


@check("CM-EXT-020", level=Level.RUNS, requires=("ext.symbol_map",), since="1.0", views=())
def symbols_are_mapped(subject: Subject) -> None:
    """The toolchain MUST map the usual CUDA symbols to identifiers of the vendor's runtime.

    Fix: fill ``symbol_map`` from the vendor's published table; leave out what has no counterpart.
    """
    toolchain = _toolchain(subject)
    table = toolchain.symbol_map
    absent = [name for name in _USUAL if name not in table]
    require(not absent, f"not mapped: {', '.join(absent)}")
    for name, target in table.items():
        for word in (name, target):
            require(_IDENTIFIER.fullmatch(word), f"{name} -> {target}: {word!r} is no identifier")
    require(toolchain.compiler.strip(), "the toolchain names no compiler")


@check("CM-EXT-021", level=Level.RUNS, requires=("ext.build",), since="1.0", views=())
def toolchains_are_importable(subject: Subject) -> None:
    """The extension class that the toolchain names MUST be importable once the adapter is loaded.

    Fix: write the dotted path as ``import`` takes it, module first, class last.
    """
    path = _toolchain(subject).extension_class
    require(path, "the toolchain names no extension class")
    module, _, name = str(path).rpartition(".")
    require(hasattr(import_module(module), name), f"{module} has no {name}")
    require(module in sys.modules, f"{module} was not imported")


def _toolchain(subject: Subject) -> Any:
    toolchain = subject.call("cuda_morph_extension_toolchain")
    require(toolchain is not None, "there is no toolchain")
    return toolchain
