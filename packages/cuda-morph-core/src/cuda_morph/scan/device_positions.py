"""Where a string is a device: arguments, names and comparisons that take one.

A string ``"cuda"`` in a log message, a path or a query is no device. It is one as the argument of
a function that takes devices, in a keyword or variable named after a device, and in a comparison
with such a name.
"""

from __future__ import annotations

import ast
import re

DEVICE_NAME = re.compile(
    r"(?:.*_)?(?:device|devices|dev|device_type|device_types|device_ids|device_name|device_str"
    r"|map_location|accelerator|accelerator_type|placement)(?:_?\d+|_from|_to|_a|_b|_list)?",
    re.IGNORECASE,
)
"""Keywords and variables that hold a device."""

TYPE_NAME = re.compile(r"(?:.*_)?(?:type|platform|backend|arch|location|hardware)", re.IGNORECASE)
"""Names that hold a device type, in comparisons only."""

BACKEND_NAME = re.compile(r"(?:.*_)?(?:backend|backend_name|dist_backend|backend_type|be)$")
"""Keywords and variables that hold a collective backend."""

FUNCTIONS = frozenset(
    {
        "torch.device",
        "torch.set_default_device",
        "torch.Generator",
        "torch.autocast",
        "torch.amp.autocast",
        "torch.amp.autocast_mode.autocast",
        "torch.amp.GradScaler",
        "torch.get_device_module",
        "torch.get_autocast_dtype",
        "torch.set_autocast_dtype",
        "torch.is_autocast_enabled",
        "torch.set_autocast_enabled",
        "torch.amp.is_autocast_available",
        "torch.UntypedStorage",
        "torch.distributed.init_device_mesh",
        "torch.distributed.device_mesh.init_device_mesh",
        "torch.distributed.device_mesh.DeviceMesh",
        "torch.distributed.DeviceMesh",
        "torch.distributed.tensor.DeviceMesh",
        "torch.random.fork_rng",
        "torch.accelerator.set_device_index",
        "torch.accelerator.synchronize",
        "torch.backends.mha.set_fastpath_enabled",
    }
)
"""Functions whose positional arguments are devices."""

METHODS = frozenset({"to", "cuda", "pin_memory", "to_empty", "is_pinned"})
"""Methods whose positional arguments are devices, on whatever object."""

LIBRARY_FUNCTIONS = ("torch.library.",)


def takes_device(call: ast.Call, name: str | None) -> bool:
    """Tells whether the positional arguments of a call are devices.

    Args:
        call: The call.
        name: Qualified name of the function, if known.
    """
    if name is not None and (name in FUNCTIONS or name.startswith("torch.cuda.")):
        return True
    return isinstance(call.func, ast.Attribute) and call.func.attr in METHODS


def last_name(node: ast.AST) -> str:
    """Returns the identifier that an expression ends in: ``type`` of ``x.device.type``."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return node.slice.value
        return last_name(node.value)
    if isinstance(node, ast.Call):
        inner = node.args[0] if _wraps(node) else node.func
        return last_name(inner)
    return ""


def _wraps(call: ast.Call) -> bool:
    """Tells calls that stand for their argument: ``str(device)``, ``torch.device(name)``."""
    return (
        bool(call.args)
        and isinstance(call.func, (ast.Name, ast.Attribute))
        and last_name(call.func) in {"str", "device", "repr", "getattr", "lower"}
    )


def holds_device(node: ast.AST) -> bool:
    """Tells whether an expression names a device, judged by how it is called."""
    name = last_name(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        # device.lower(), device.split(":"): about what they are called on
        name = name if node.args and _wraps(node) else last_name(node.func.value)
    return bool(DEVICE_NAME.fullmatch(name))


def compares_device(node: ast.AST) -> bool:
    """Tells whether an expression may be compared with a device string."""
    return holds_device(node) or bool(TYPE_NAME.fullmatch(last_name(node)))
