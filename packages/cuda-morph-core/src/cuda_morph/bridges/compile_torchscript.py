"""``x.cuda()`` and ``x.is_cuda`` inside TorchScript: about the device that ``cuda`` names.

Upstream: ``torch/csrc/jit/runtime/register_prim_ops.cpp`` has the CUDA device type compiled into
the operators ``aten::cuda`` and ``prim::is_cuda``. Their calls are rewritten in each graph that is
compiled or loaded, to what ``x.to("cuda")`` and ``x.device.type == torch.device("cuda").type``
compile to. Saved again, the code reads so; in the native view it names the accelerator. Can go when
TorchScript does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is
from torch.jit import _recursive  # noqa: TID253

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.patching import Journal

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


def apply(journal: Journal) -> None:
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
