"""The expressions that ported code uses in place of CUDA's.

A ported file has two names of its own. ``DEVICE_TYPE`` is the accelerator's device type, and
``"cuda"`` where there is none, so that on a machine without accelerator and on one with CUDA the
program does exactly what it did before. ``DEVICE_MODULE`` is that type's counterpart of
``torch.cuda``.
"""

from __future__ import annotations

import libcst as cst

DEVICE_TYPE = "DEVICE_TYPE"
DEVICE_MODULE = "DEVICE_MODULE"

ACCELERATOR = {
    "is_available": "is_available",
    "device_count": "device_count",
    "synchronize": "synchronize",
    "current_device": "current_device_index",
    "set_device": "set_device_index",
    "set_stream": "set_stream",
}
"""Functions of torch.cuda whose namesake in torch.accelerator behaves the same."""

EVERYWHERE = frozenset(
    {
        "Stream", "current_stream", "device", "empty_cache", "get_rng_state", "get_rng_state_all",
        "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated",
        "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved",
        "memory_stats", "reset_accumulated_memory_stats", "reset_peak_memory_stats",
        "set_rng_state", "set_rng_state_all", "stream", "Event", "get_device_name",
        "get_device_properties",
    }
)  # fmt: skip
"""Names of torch.cuda that the device modules of all vendors have too."""

NEUTRAL = {"torch.cuda.OutOfMemoryError": "OutOfMemoryError"}
"""Names of torch.cuda that are objects of torch under another name."""


def definition(torch: str, names: set[str]) -> list[cst.BaseStatement]:
    """Returns the statements that define the names a file needs.

    Args:
        torch: The name under which the file imports torch.
        names: Which of `DEVICE_TYPE` and `DEVICE_MODULE` it uses.
    """
    lines = [
        f'{DEVICE_TYPE} = getattr({torch}.accelerator.current_accelerator(), "type", "cuda")\n'
    ]
    if DEVICE_MODULE in names:
        lines.append(f"{DEVICE_MODULE} = {torch}.get_device_module({DEVICE_TYPE})\n")
    first, *others = [cst.parse_statement(line) for line in lines]
    first = first.with_changes(leading_lines=[cst.EmptyLine(indent=False)])
    return [first, *others]


def device_string(text: str) -> str:
    """Returns the source of an expression for a whole device string.

    Args:
        text: ``cuda`` or ``cuda:1``.
    """
    _, colon, index = text.partition(":")
    return f'f"{{{DEVICE_TYPE}}}:{index}"' if colon else DEVICE_TYPE


def keep_parentheses(old: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
    """Gives an expression the parentheses of the one that it replaces, in front of its own."""
    changed: cst.BaseExpression = new.with_changes(
        lpar=[*old.lpar, *new.lpar], rpar=[*new.rpar, *old.rpar]
    )
    return changed


def parse(source: str) -> cst.BaseExpression:
    """Returns the tree of an expression."""
    return cst.parse_expression(source)
