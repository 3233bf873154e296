"""Functions that TorchScript compiles: it knows no global variables, so nothing can be ported."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

_COMPILERS = frozenset({"script", "script_method", "script_if_tracing", "export"})


def scripted_names(module: cst.Module) -> frozenset[str]:
    """Returns the names of functions that a module gives to ``torch.jit.script`` itself.

    Args:
        module: The module.
    """
    function = m.Attribute(
        attr=m.Name("script"), value=m.Attribute(attr=m.Name("jit")) | m.Name("jit")
    )
    calls = m.findall(module, m.Call(func=function, args=[m.Arg(m.Name()), m.ZeroOrMore()]))
    found = set()
    for call in calls:
        if isinstance(call, cst.Call) and isinstance(call.args[0].value, cst.Name):
            found.add(call.args[0].value.value)
    return frozenset(found)


def is_scripted(function: cst.FunctionDef, names: frozenset[str]) -> bool:
    """Tells whether TorchScript compiles a function.

    Args:
        function: The function.
        names: What `scripted_names` found.
    """
    if function.name.value in names:
        return True
    for decorator in function.decorators:
        node = decorator.decorator
        if isinstance(node, cst.Call):
            node = node.func
        parts = cst.Module([]).code_for_node(node).split(".")
        if parts[-1] in _COMPILERS and "jit" in parts:
            return True
    return False
