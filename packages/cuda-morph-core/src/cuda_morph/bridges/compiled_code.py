"""``x.cuda()`` and ``x.is_cuda`` in compiled code: TorchScript's and Dynamo's.

TorchScript. Upstream: ``torch/csrc/jit/runtime/register_prim_ops.cpp`` has the CUDA device type
compiled into the operators ``aten::cuda`` and ``prim::is_cuda``. Their calls are rewritten in each
graph that is compiled or loaded, to what ``x.to("cuda")`` and
``x.device.type == torch.device("cuda").type`` compile to. Saved again, the code reads so; in the
native view it names the accelerator. Can go when TorchScript does.

Dynamo. Upstream: ``torch/_dynamo/variables/tensor.py`` folds ``is_cuda`` to
``device.type == "cuda"``. Where devices keep their own name that is False, while the tensor itself
says True. Can go when Dynamo asks the tensor. Dynamo is not loaded for it: the change is made when
a program first compiles.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is
from torch.jit import _recursive  # noqa: TID253

from cuda_morph.import_watch import after_import

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.interception import Target
    from cuda_morph.patching import Journal

_DYNAMO = "torch._dynamo.variables.tensor"
_REWRITES = {
    "aten::cuda": (
        """
        graph(%self):
          %moved = aten::cuda(%self)
          return (%moved)
        """,
        """
        graph(%self):
          %device : Device = prim::Constant[value="cuda"]()
          %none : NoneType = prim::Constant()
          %no : bool = prim::Constant[value=0]()
          %moved = aten::to(%self, %device, %none, %no, %no)
          return (%moved)
        """,
    ),
    "prim::is_cuda": (
        """
        graph(%self):
          %answer : bool = prim::is_cuda(%self)
          return (%answer)
        """,
        """
        graph(%self):
          %device : Device = prim::Constant[value="cuda"]()
          %own : Device = prim::device(%self)
          %wanted_type : str = prim::type(%device)
          %own_type : str = prim::type(%own)
          %answer : bool = aten::eq(%own_type, %wanted_type)
          return (%answer)
        """,
    ),
}
"""Operator: the call as it is found, and what stands in its place."""


def apply(journal: Journal, target: Target) -> None:
    """Changes TorchScript now, and Dynamo now or as soon as it is loaded."""
    _rewrite_torchscript(journal)
    journal.on_rollback(after_import(_DYNAMO, lambda: _redirect_dynamo(journal, target)))


def _rewrite_torchscript(journal: Journal) -> None:
    """Rewrites what comes out of the places where TorchScript code comes into being."""
    for name in ("_jit_script_compile", "_jit_script_compile_overload"):
        journal.set_attribute(torch._C, name, _rewriting_function(getattr(torch._C, name)))
    module_of = journal.redirect_function(
        _recursive.create_script_module_impl,
        lambda *args, **kwargs: _rewritten_module(module_of(*args, **kwargs)),
    )
    wrapped = journal.redirect_function(
        _recursive.wrap_cpp_module, lambda cpp_module: _rewritten_module(wrapped(cpp_module))
    )


def _rewriting_function(compile_function: Callable[..., Any]) -> Callable[..., Any]:
    def compile_and_rewrite(*args: Any) -> Any:
        function = compile_function(*args)
        _rewrite(function.graph)
        return function

    return compile_and_rewrite


def _rewritten_module(module: Any) -> Any:
    for name in module._c._method_names():
        _rewrite(module._c._get_method(name).graph)
    return module


def _rewrite(graph: Any) -> None:
    if graph.findNode("prim::CallFunction") is not None:
        # A function of a loaded file can be reached through its callers only.
        torch._C._jit_pass_inline(graph)
    for operator, (found, wanted) in _REWRITES.items():
        if graph.findNode(operator) is not None:
            torch._C._jit_pass_custom_pattern_based_rewrite_graph(found, wanted, graph)


def _redirect_dynamo(journal: Journal, target: Target) -> None:
    tensors: Any = importlib.import_module(_DYNAMO)
    names = {target.device_type, "cuda"}
    native_packages = target.policy.native_packages if target.policy.by_frame else frozenset()

    def is_cuda(variable: Any, tracer: Any) -> Any:
        if variable.device is None:
            return None
        reader = str(tracer.f_globals.get("__name__", "")).partition(".")[0]
        answer = variable.device.type in names and reader not in native_packages
        return tensors.VariableTracker.build(tracer, answer)

    journal.redirect_function(tensors.TensorVariable.method_attr_is_cuda, is_cuda)
