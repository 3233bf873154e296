"""An operator's project as files: C++, registration, tests, from one declaration."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cuda_morph.errors import SettingError
from cuda_morph.scaffolding.operator_expression import translate
from cuda_morph.scaffolding.operator_spec import DTYPES, LEADING, OperatorSpec, read_spec
from cuda_morph.scaffolding.project_files import render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cuda_morph.scaffolding.operator_targets import Target

_FULL_WIDTH = 4
_START = {"sum": "compute_t(0)", "max": "first", "min": "first"}
_STEP = {"sum": "a + b", "max": "a < b ? b : a", "min": "b < a ? b : a"}
_TORCH = {"sum": "x.sum(-1)", "max": "x.amax(-1)", "min": "x.amin(-1)"}


def operator_files(content: Mapping[str, Any], target: Target) -> dict[str, str]:
    """Writes the files of an operator.

    Args:
        content: The declaration.
        target: Where the templates are.

    Returns:
        Texts by path below the project's folder.

    Raises:
        SettingError: The declaration is wrong, or the target cannot take it.
    """
    spec = read_spec(content, least_alignment=target.alignment)
    if spec.kind not in target.kinds:
        raise SettingError(
            f"The target {target.name!r} has no template for the kind {spec.kind!r}.",
            hint=f"It has: {', '.join(target.kinds)}.",
        )
    if spec.dtype not in target.types:
        raise SettingError(
            f"The target {target.name!r} has no word for {spec.dtype}.",
            hint=f"It has: {', '.join(target.types)}.",
        )
    return render(target.folder / spec.kind, _values(spec, target)) | {
        "spec.json": json.dumps(dict(content) | {"alignment": spec.alignment}, indent=2) + "\n"
    }


def _values(spec: OperatorSpec, target: Target) -> dict[str, str]:
    names = [tensor.name for tensor in spec.inputs]
    _, compute, size = DTYPES[spec.dtype]
    values = {
        "name": spec.name,
        "package": f"{spec.name}_op",
        "kind": spec.kind,
        "dtype": spec.dtype,
        "element": target.types[spec.dtype],
        "compute": compute,
        "itemsize": str(size),
        "alignment": str(spec.alignment),
        "sizes": _sizes(spec),
        "source": target.source,
        "count": str(len(names)),
        "arguments": ", ".join(names),
        "schema": ", ".join(f"Tensor {name}" for name in names),
        "tensors": ", ".join(f"const at::Tensor& {name}" for name in names),
        "hosts": ", ".join(f"{name}.cpu()" for name in names),
        "first": names[0],
        "checks": "\n".join(_checks(spec)),
        "shapes": json.dumps({t.name: list(t.shape) for t in spec.inputs}),
        "out_shape": json.dumps(list(spec.output.shape)),
        "cpp": "",
        "gradients": "",
    }
    return values | _KIND[spec.kind](spec)


def _sizes(spec: OperatorSpec) -> str:
    if spec.alignment <= spec.itemsize:
        return "Dimensions may have any size that fits the declared shapes."
    return (
        f"The last dimension of every input is a multiple of {spec.alignment} bytes; anything else "
        "is refused, on every\ndevice."
    )


def _elementwise(spec: OperatorSpec) -> dict[str, str]:
    names = [tensor.name for tensor in spec.inputs]
    cpp, torch = translate(spec.expression, names, whole=spec.dtype.startswith("int"))
    return {
        "cpp": cpp,
        "reference": torch,
        "formula": torch.replace("torch.", ""),  # in one line, which what was written need not be
        "parameters": ", ".join(f"compute_t {name}" for name in names),
        "values": ", ".join(f"compute_t(source[{i}][index])" for i in range(len(names))),
        "sources": ", ".join(f"ready[{i}].const_data_ptr<element_t>()" for i in range(len(names))),
        "ready": ", ".join(f"{name}.contiguous()" for name in names),
        "gradients": _gradients(spec),
        "differentiable": str(bool(spec.gradients)),
        "globals": "\n".join(f"    GM_ADDR {name}_gm," for name in names),
    }


def _reduction(spec: OperatorSpec) -> dict[str, str]:
    name = spec.inputs[0].name
    return {
        "start": _START[spec.reduce],
        "step": _STEP[spec.reduce],
        "reference": _TORCH[spec.reduce].replace("x.", f"{name}.", 1),
        "differentiable": "False",
    }


def _matmul(spec: OperatorSpec) -> dict[str, str]:
    left, right = (tensor.name for tensor in spec.inputs)
    return {
        "left": left,
        "right": right,
        "reference": f"{left} @ {right}",
        "differentiable": "False",
    }


_KIND = {"elementwise": _elementwise, "reduction": _reduction, "matmul": _matmul}


def _gradients(spec: OperatorSpec) -> str:
    """Writes the registration of the gradients, in Python."""
    if not spec.gradients:
        return ""
    names = [tensor.name for tensor in spec.inputs]
    # As the kernel does, which keeps a sum or a difference of small numbers from losing digits.
    widened = spec.itemsize < _FULL_WIDTH
    narrow = f".to(torch.{spec.dtype})" if widened else ""
    rows = []
    for name in names:
        formula = spec.gradients.get(name)
        text = translate(formula, {*names, "grad"})[1] if formula else "None"
        rows.append(f"        {text}{narrow if formula else ''},")
    unpacked = f"{names[0]}," if len(names) == 1 else ", ".join(names)
    saved = [f"    {unpacked} = ctx.saved_tensors"]
    if widened:
        saved = [
            f"    {', '.join([*names, 'grad'])} = (",
            "        value.float() for value in (*ctx.saved_tensors, grad)",
            "    )",
        ]
    return "\n".join(
        [
            "def _keep(ctx, inputs, output):",
            "    ctx.save_for_backward(*inputs)",
            "",
            "",
            "def _gradients(ctx, grad):",
            *saved,
            "    return (",
            *rows,
            "    )",
            "",
            "",
            "torch.library.register_autograd(",
            f'    "{spec.name}_op::{spec.name}", _gradients, setup_context=_keep',
            ")",
        ]
    )


def _checks(spec: OperatorSpec) -> list[str]:
    """Writes C++ that refuses shapes which were not declared."""
    lines: list[str] = []
    seen: dict[str, str] = {}
    for tensor in spec.inputs:
        sizes = [size for size in tensor.shape if size != LEADING]
        sign = ">=" if LEADING in tensor.shape else "=="
        lines.append(_check(f"{tensor.name}.dim() {sign} {len(sizes)}", tensor.name, "dimensions"))
        for place, size in enumerate(sizes):
            here = f"{tensor.name}.size({place - len(sizes)})"
            if isinstance(size, int):
                lines.append(_check(f"{here} == {size}", tensor.name, f"size {size}"))
            elif size in seen:
                lines.append(_check(f"{here} == {seen[size]}", tensor.name, f"size {size}"))
            else:
                seen[size] = here
    if spec.kind == "elementwise":
        first, *others = (tensor.name for tensor in spec.inputs)
        lines += [_check(f"{o}.sizes() == {first}.sizes()", o, "shape") for o in others]
    return lines


def _check(condition: str, name: str, what: str) -> str:
    return f'  TORCH_CHECK({condition}, "{name} has the wrong {what}: ", {name}.sizes());'
