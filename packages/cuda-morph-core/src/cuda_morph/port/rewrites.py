"""What each rule's finding is rewritten to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import libcst as cst

from cuda_morph.frozen_record import frozen_record
from cuda_morph.port import expressions
from cuda_morph.port.expressions import DEVICE_MODULE, DEVICE_TYPE, device_string, parse

if TYPE_CHECKING:
    from cuda_morph.scan.finding import Finding

_AMP_CALLS = {"autocast": "device_type", "GradScaler": "device"}
_AMP_FIRST = {"autocast": "enabled", "GradScaler": "init_scale"}


@frozen_record
class Rewrite:
    """A changed expression."""

    node: cst.BaseExpression
    names: frozenset[str] = frozenset({DEVICE_TYPE})
    """The file's own names that it uses."""
    safe: bool = True
    """False where the meaning may differ on an accelerator."""


RewriteFunction = Callable[[cst.BaseExpression, "Finding", str], "Rewrite | None"]
"""Takes an expression, its finding and torch's name in the file; ``None``: not possible."""


def string(node: cst.BaseExpression, found: Finding, torch: str) -> Rewrite | None:
    """``"cuda"`` and strings built from it, where a device is expected."""
    del found, torch
    if isinstance(node, cst.SimpleString):
        value = node.evaluated_value
        # "CUDA" is no device for PyTorch: whoever takes it means another list of names.
        if isinstance(value, str) and value.startswith("cuda"):
            return Rewrite(node=parse(device_string(value)))
    if isinstance(node, cst.FormattedString):
        return _formatted(node)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.left, cst.SimpleString):
        left = _prefix(node.left)
        return Rewrite(node=node.with_changes(left=left)) if left else None
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return _format_call(node, node.func)
    return None


def _formatted(node: cst.FormattedString) -> Rewrite | None:
    first = node.parts[0]
    if not isinstance(first, cst.FormattedStringText) or not first.value.startswith("cuda"):
        return None
    variable = cst.FormattedStringExpression(expression=cst.Name(DEVICE_TYPE))
    rest = first.with_changes(value=first.value[len("cuda") :])
    return Rewrite(node=node.with_changes(parts=[variable, rest, *node.parts[1:]]))


def _prefix(node: cst.SimpleString) -> cst.BaseExpression | None:
    value = node.evaluated_value
    if not isinstance(value, str) or not value.startswith("cuda") or set(value) & set("{}\\\"'"):
        return None
    return parse(f'f"{{{DEVICE_TYPE}}}{value[len("cuda") :]}"')


def _format_call(node: cst.Call, function: cst.Attribute) -> Rewrite | None:
    text = function.value
    value = text.evaluated_value if isinstance(text, cst.SimpleString) else None
    if not isinstance(value, str) or function.attr.value != "format":
        return None
    rest = value[len("cuda") :]
    if "\\" in rest or '"' in rest:
        return None
    template = parse(f'({DEVICE_TYPE} + "{rest}")')
    return Rewrite(node=node.with_changes(func=function.with_changes(value=template)))


def cuda_method(node: cst.BaseExpression, found: Finding, torch: str) -> Rewrite | None:
    """``x.cuda()`` becomes ``x.to(DEVICE_TYPE)``."""
    del found, torch
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    if any(argument.star for argument in node.args):
        return None
    named = {argument.keyword.value: argument for argument in node.args if argument.keyword}
    positional = [argument for argument in node.args if argument.keyword is None]
    for argument, name in zip(positional, ("device", "non_blocking"), strict=False):
        named[name] = argument.with_changes(keyword=cst.Name(name), equal=_EQUAL)
    device, safe = _device_argument(named.pop("device", None))
    if device is None or len(positional) > 2:  # noqa: PLR2004 - a device and whether to wait
        return None
    arguments = [cst.Arg(device), *named.values()]
    last = arguments[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    changed = node.with_changes(
        func=node.func.with_changes(attr=cst.Name("to")), args=[*arguments[:-1], last]
    )
    return Rewrite(node=changed, safe=safe)


_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
_DEVICES = frozenset({"device", "current_device", "current_device_index"})


def _device_argument(argument: cst.Arg | None) -> tuple[cst.BaseExpression | None, bool]:
    """Returns what ``.to`` gets, and whether its meaning is certain."""
    value = argument.value if argument else cst.Name("None")
    if isinstance(value, cst.Integer):
        return parse(f'f"{{{DEVICE_TYPE}}}:{value.value}"'), True
    if isinstance(value, cst.Name) and value.value == "None":
        return cst.Name(DEVICE_TYPE), True
    if isinstance(value, cst.UnaryOperation):  # -1: the current device
        return None, False
    certain = isinstance(value, (cst.SimpleString, cst.FormattedString))
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        certain = value.func.attr.value in _DEVICES
    return value, certain or (isinstance(value, cst.Name) and value.value == DEVICE_TYPE)


def is_cuda(node: cst.BaseExpression, found: Finding, torch: str) -> Rewrite | None:
    """``x.is_cuda`` becomes a comparison of device types."""
    del found, torch
    if not isinstance(node, cst.Attribute):
        return None
    source = cst.Attribute(cst.Attribute(node.value, cst.Name("device")), cst.Name("type"))
    comparison = cst.Comparison(
        left=source,
        comparisons=[cst.ComparisonTarget(cst.Equal(), cst.Name(DEVICE_TYPE))],
        lpar=[cst.LeftParen()],
        rpar=[cst.RightParen()],
    )
    return Rewrite(node=comparison)


def comparison(node: cst.BaseExpression, found: Finding, torch: str) -> Rewrite | None:
    """The CUDA strings of a comparison, or the prefix that a device must start with."""
    del torch
    text = found.symbol
    if not text.startswith("cuda"):
        return None
    source = f'f"{{{DEVICE_TYPE}}}:"' if text == "cuda:" else device_string(text)
    return _with_string_replaced(node, text, source)


def _with_string_replaced(node: cst.BaseExpression, text: str, source: str) -> Rewrite | None:
    replacer = _StringReplacer(text, source)
    changed = node.visit(replacer)
    if not replacer.count or not isinstance(changed, cst.BaseExpression):
        return None
    # The same parentheses, not only equal ones, so that they are known to be the old ones.
    return Rewrite(node=changed.with_changes(lpar=node.lpar, rpar=node.rpar))


class _StringReplacer(cst.CSTTransformer):
    """Replaces one string literal wherever it stands in an expression."""

    def __init__(self, text: str, source: str) -> None:
        super().__init__()
        self._text, self._source = text, source
        self.count = 0

    def leave_SimpleString(  # noqa: N802 - libcst's naming
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.BaseExpression:
        """Replaces the literal."""
        if original_node.evaluated_value != self._text:
            return updated_node
        self.count += 1
        return expressions.keep_parentheses(updated_node, parse(self._source))


def cuda_name(node: cst.BaseExpression, found: Finding, torch: str) -> Rewrite | None:
    """A name of torch.cuda."""
    if isinstance(node, cst.SimpleString):
        return _replaced_name(found)
    if not isinstance(node, cst.Attribute):
        return None
    if found.symbol in expressions.NEUTRAL:
        neutral = expressions.NEUTRAL[found.symbol]
        return Rewrite(node=parse(f"{torch}.{neutral}"), names=frozenset())
    module, _, name = found.symbol.rpartition(".")
    if module not in {"torch.cuda", "torch.cuda.memory", "torch.cuda.random"}:
        return None
    if name in expressions.ACCELERATOR and module == "torch.cuda":
        source = f"{torch}.accelerator.{expressions.ACCELERATOR[name]}"
        return Rewrite(node=parse(source), names=frozenset())
    names = frozenset({DEVICE_TYPE, DEVICE_MODULE})
    known = name in expressions.EVERYWHERE
    if not known and found.symbol == "torch.cuda":
        return None
    return Rewrite(node=parse(f"{DEVICE_MODULE}.{name}"), names=names, safe=known)


def _replaced_name(found: Finding) -> Rewrite | None:
    """``mock.patch("torch.cuda.is_available")``: what a test replaces follows what is called."""
    name = found.symbol.removeprefix("torch.cuda.")
    if name in expressions.ACCELERATOR:
        source = f'"torch.accelerator.{expressions.ACCELERATOR[name]}"'
        return Rewrite(node=parse(source), names=frozenset())
    if name in expressions.EVERYWHERE:
        return Rewrite(node=parse(f'f"torch.{{{DEVICE_TYPE}}}.{name}"'))
    return None


def amp_call(node: cst.BaseExpression, found: Finding, torch: str) -> Rewrite | None:
    """``torch.cuda.amp.autocast()`` and its like become those of torch.amp."""
    if not isinstance(node, cst.Call):
        return None
    name = found.symbol.rpartition(".")[2]
    function = node.func
    if isinstance(function, cst.Attribute):
        function = parse(f"{torch}.amp.{name}")
    arguments = list(node.args)
    if any(argument.star for argument in arguments):
        return None
    if name in _AMP_CALLS:
        positional = [argument for argument in arguments if argument.keyword is None]
        if len(positional) > 1:
            return None
        arguments = [
            argument
            if argument.keyword is not None
            else argument.with_changes(keyword=cst.Name(_AMP_FIRST[name]), equal=_EQUAL)
            for argument in arguments
        ]
        arguments.insert(0, cst.Arg(cst.Name(DEVICE_TYPE)))
    elif name in {"custom_fwd", "custom_bwd"}:
        value = cst.Name(DEVICE_TYPE)
        arguments.append(cst.Arg(value, keyword=cst.Name("device_type"), equal=_EQUAL))
    else:
        return None
    return Rewrite(node=node.with_changes(func=function, args=arguments))


def amp_decorator(node: cst.BaseExpression, found: Finding, torch: str) -> Rewrite | None:
    """``@torch.cuda.amp.custom_fwd`` without a call."""
    name = found.symbol.rpartition(".")[2]
    if name not in {"custom_fwd", "custom_bwd"}:
        return None
    function = f"{torch}.amp.{name}" if isinstance(node, cst.Attribute) else name
    return Rewrite(node=parse(f"{function}(device_type={DEVICE_TYPE})"))


def backend(node: cst.BaseExpression, found: Finding, torch: str) -> Rewrite | None:
    """The backend ``nccl`` becomes the default of the device type."""
    default = f"{torch}.distributed.get_default_backend_for_device({DEVICE_TYPE})"
    if isinstance(node, cst.Attribute):  # Backend.NCCL
        return Rewrite(node=parse(default))
    if isinstance(node, cst.Comparison) and found.symbol == "nccl":
        return _with_string_replaced(node, "nccl", default)
    if not isinstance(node, cst.SimpleString) or found.symbol.lower() != "nccl":
        return None
    return Rewrite(node=parse(default))


REWRITES: dict[str, RewriteFunction] = {
    "CM101": string,
    "CM103": is_cuda,
    "CM104": comparison,
    "CM106": string,
    "CM107": string,
    "CM201": cuda_name,
    "CM301": backend,
}
"""Rewrites of the expression that a finding points at."""

CALL_REWRITES: dict[str, RewriteFunction] = {
    "CM102": cuda_method,
    "CM205": amp_call,
}
"""Rewrites of the call whose function a finding points at."""
