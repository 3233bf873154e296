"""Gradients: what autograd computes on the device is what it computes on the CPU."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.models import (
    MLP,
    exact_products,
    gradients,
    loss_of,
    mlp,
    numbers,
    undisturbed,
)
from cuda_morph_conformance.registry import CheckFailed, check, require
from cuda_morph_conformance.tolerances import PRODUCT, require_close
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from torch import Tensor, nn

    from cuda_morph_conformance.subject import Subject

_runs = partial(check, level=Level.RUNS, since="1.0", devices=1)
_trains = partial(check, level=Level.TRAINS, since="1.0", devices=1)


@_trains("CM-GRAD-001", requires=("autograd.backward",))
def gradients_match(_subject: Subject) -> None:
    """Gradients of a small network MUST be those that the CPU computes.

    Fix: compare operator by operator against the CPU, beginning with the first gradient that
    differs; register the missing derivative or kernel for the device's dispatch key.
    """
    _require_same(_after_backward(_model("cuda")), gradients(_after_backward(_model("cpu"))))


@_trains("CM-GRAD-002", requires=("autograd.backward",))
def gradients_stay_on_the_device(_subject: Subject) -> None:
    """A gradient MUST have the device, dtype and shape of its parameter.

    Fix: let backward kernels allocate on the device of the tensor they differentiate.
    """
    for name, parameter in _after_backward(_model("cuda")).named_parameters():
        gradient = _grad(parameter)
        require(gradient.device == parameter.device, f"{name}: gradient on {gradient.device}")
        require(gradient.is_cuda, f"{name}: gradient.is_cuda is False")
        require(gradient.dtype == parameter.dtype, f"{name}: gradient of {gradient.dtype}")
        require(gradient.shape == parameter.shape, f"{name}: gradient of shape {gradient.shape}")


@_trains("CM-GRAD-003", requires=("autograd.backward",))
def gradients_accumulate(_subject: Subject) -> None:
    """A second backward pass MUST add its gradients to those of the first.

    Fix: let in-place addition on the device write into the tensor it is called on.
    """
    model = _after_backward(_model("cuda"))
    twice = {name: 2 * gradient for name, gradient in gradients(model).items()}
    _require_same(_after_backward(model), twice, "after two passes")


@_trains("CM-GRAD-004", requires=("autograd.backward",))
def grad_of_inputs(_subject: Subject) -> None:
    """torch.autograd.grad MUST give gradients of inputs, and leave Tensor.grad alone.

    Fix: register the derivative for the device's autograd key, not for the plain device key.
    """
    import torch

    x = numbers(4, 4).cuda().requires_grad_()
    (gradient,) = torch.autograd.grad((x.sin() * x).sum(), x)
    require(x.grad is None, "Tensor.grad was written")
    host = x.detach().cpu()
    require_close(gradient, host.cos() * host + host.sin(), "gradient of sin(x) * x")


@_trains("CM-GRAD-005", requires=("autograd.backward",))
def gradients_cross_devices(_subject: Subject) -> None:
    """Gradients MUST flow through copies between the CPU and the device, in both directions.

    Fix: copies are differentiable by PyTorch's own ``_to_copy``; do not register a kernel of your
    own for ``aten::to`` or ``Tensor.cuda``.
    """
    source = numbers(3, 3).requires_grad_()
    back = (source.to("cuda") * 3).cpu() * source.cuda(non_blocking=True).cpu()
    back.sum().backward()
    gradient = _grad(source)
    require(gradient.device.type == "cpu", f"the gradient is on {gradient.device}")
    require_close(gradient, 6 * source, "gradient through two copies")


@_trains("CM-GRAD-006", requires=("autograd.backward",))
def tensor_hooks_run(_subject: Subject) -> None:
    """Hooks on tensors MUST run with device gradients, and what they return MUST be used.

    Fix: keep ``torch.Tensor`` as the type of device tensors; a subclass loses its hooks.
    """
    x = numbers(4).cuda().requires_grad_()
    seen: list[bool] = []

    def tenfold(gradient: Tensor) -> Tensor:
        seen.append(gradient.is_cuda)
        return gradient * 10

    x.register_hook(tenfold)
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad is not None))
    (x * 2).sum().backward()
    require(seen == [True, True], f"hooks saw {seen}, expected a device gradient, then the leaf's")
    require_close(_grad(x), numbers(4) * 0 + 20, "hooked gradient")


@_trains("CM-GRAD-007", requires=("autograd.backward",))
def module_hooks_run(_subject: Subject) -> None:
    """Forward and full backward hooks of modules MUST run with device tensors.

    Fix: see the traceback; module hooks are plain Python and fail only where views or hooks of
    device tensors do.
    """
    model = _model("cuda")
    order: list[str] = []
    model[2].register_forward_pre_hook(lambda *_: order.append("pre"))
    model[2].register_forward_hook(lambda _m, _i, out: order.append(f"forward {out.is_cuda}"))
    model[2].register_full_backward_hook(
        lambda _m, _i, out: order.append(f"backward {out[0].is_cuda}")
    )
    _after_backward(model)
    require(order == ["pre", "forward True", "backward True"], f"hooks ran as {order}")


@_trains("CM-GRAD-008", requires=("autograd.backward",))
def anomaly_mode_finds_the_operator(_subject: Subject) -> None:
    """Anomaly detection MUST name the operator whose gradient is not a number.

    Fix: let comparison and ``isnan`` on the device see NaN as the CPU does.
    """
    import warnings

    import torch

    x = torch.zeros(2, device="cuda", requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.set_detect_anomaly(True):
            loss = (x.sqrt() * 0).sum()
            try:
                loss.backward()
            except RuntimeError as error:
                require("SqrtBackward" in str(error), f"the error names no operator: {error}")
                return
    raise CheckFailed("a NaN gradient went unnoticed")


@_runs("CM-GRAD-009")
def inference_records_nothing(_subject: Subject) -> None:
    """Under no_grad and inference_mode, results on the device MUST carry no graph.

    Fix: do not wrap device kernels in autograd functions that record regardless of the mode.
    """
    import torch

    model, inputs = _model("cuda"), MLP.inputs().cuda()
    with torch.no_grad():
        require(model(inputs).grad_fn is None, "a graph was recorded under no_grad")
    with torch.inference_mode():
        result = model(inputs)
        require(result.is_inference(), "the result is no inference tensor")
    require(not model(inputs).detach().requires_grad, "detach() keeps requires_grad")
    require(model(inputs).requires_grad, "recording did not come back after the blocks")


@_trains("CM-GRAD-010", requires=("autograd.backward",))
def saved_tensors_can_move(_subject: Subject) -> None:
    """save_on_cpu MUST keep saved tensors on the CPU and give the same gradients.

    Fix: make copies between device and CPU exact, also for tensors with strides of their own.
    """
    import torch

    with torch.autograd.graph.save_on_cpu():
        model = _after_backward(_model("cuda"))
    _require_same(model, gradients(_after_backward(_model("cpu"))))


@_trains("CM-GRAD-011", requires=("autograd.backward",))
def in_place_changes_are_noticed(_subject: Subject) -> None:
    """Changing a tensor in place that backward needs MUST raise, not give a wrong gradient.

    Fix: let kernels that write in place bump the version counter, which PyTorch does for operators
    whose schema says that they do.
    """
    x = numbers(4).cuda().requires_grad_()
    y = x.exp()
    y.add_(1)
    try:
        y.sum().backward()
    except RuntimeError as error:
        require("modified by an inplace operation" in str(error), f"another error: {error}")
    else:
        raise CheckFailed("backward used the changed values")


@_trains("CM-GRAD-012", requires=("autograd.backward",))
def indexing_gradients_add_up(_subject: Subject) -> None:
    """The gradient of a repeated index MUST be the sum over its uses.

    Fix: ``index_put_`` with ``accumulate=True`` and ``embedding_dense_backward`` must add, not
    overwrite, where an index occurs more than once.
    """
    import torch

    index = torch.tensor([0, 2, 0, 0], device="cuda")
    for what in ("indexing", "embedding", "index_select"):
        table = numbers(3, 4).cuda().requires_grad_()
        rows = {
            "indexing": lambda table=table: table[index],
            "embedding": lambda table=table: torch.nn.functional.embedding(index, table),
            "index_select": lambda table=table: table.index_select(0, index),
        }[what]()
        rows.sum().backward()
        counts = torch.tensor([3.0, 0.0, 1.0]).unsqueeze(1).expand(3, 4)
        require_close(_grad(table), counts, what)


@_trains("CM-GRAD-020", requires=("autograd.double_backward",))
def second_derivatives_match(_subject: Subject) -> None:
    """Gradients of a gradient penalty MUST be those that the CPU computes.

    Fix: a backward kernel written by hand needs a derivative of its own; compose it of
    differentiable operators, or mark it with ``once_differentiable`` and claim not_yet.
    """
    import torch

    models = {device: _model(device) for device in ("cpu", "cuda")}
    for device, model in models.items():
        inputs = MLP.inputs().to(device).requires_grad_()
        with exact_products():
            (slope,) = torch.autograd.grad(model(inputs).sum(), inputs, create_graph=True)
            ((slope.norm(dim=1) - 1) ** 2).mean().backward()
    _require_same(models["cuda"], gradients(models["cpu"]), "of the penalty")


@_trains("CM-GRAD-021", requires=("autograd.custom_function",))
def custom_functions_run(_subject: Subject) -> None:
    """torch.autograd.Function MUST run forward and backward on device tensors.

    Fix: see the traceback; backward runs on autograd's thread of the device, so the adapter must
    set its device and stream there as well.
    """
    import torch

    class Cube(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Tensor, scale: float) -> Tensor:
            ctx.save_for_backward(x)
            ctx.scale = scale
            return scale * x**3

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
            (x,) = ctx.saved_tensors
            require(x.is_cuda and gradient.is_cuda, "backward was given CPU tensors")
            require(ctx.needs_input_grad == (True, False), f"{ctx.needs_input_grad}")
            return 3 * ctx.scale * x**2 * gradient, None

    x = numbers(5).cuda().requires_grad_()
    y = Cube.apply(x, 2.0)
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    require_close(first, 6 * numbers(5) ** 2, "derivative of 2 x**3", kind=PRODUCT)
    require_close(second, 12 * numbers(5), "second derivative of 2 x**3", kind=PRODUCT)


@_trains("CM-GRAD-022", requires=("autograd.checkpoint",))
def checkpointing_gives_the_same_gradients(_subject: Subject) -> None:
    """Activation checkpointing MUST give the same gradients, reentrant or not.

    Fix: see the traceback; recomputation happens inside backward, on autograd's thread.
    """
    from torch.utils.checkpoint import checkpoint

    expected = gradients(_after_backward(_model("cpu")))
    for reentrant in (False, True):
        model = _model("cuda")
        inputs = MLP.inputs().cuda().requires_grad_()
        with exact_products():
            output = checkpoint(model, inputs, use_reentrant=reentrant)
            loss_of(output, MLP.targets().cuda()).backward()
        _require_same(model, expected, f"with use_reentrant={reentrant}")


@_trains("CM-GRAD-023", requires=("autograd.checkpoint",))
def checkpointing_repeats_dropout(_subject: Subject) -> None:
    """Recomputation under checkpointing MUST draw the same dropout mask as the first pass.

    Fix: give the device module ``get_rng_state``, ``set_rng_state`` and ``_initialized = True``
    once it is initialised: PyTorch saves the device's random state only where it finds them.
    """
    import torch
    from torch.nn import functional
    from torch.utils.checkpoint import checkpoint

    for reentrant in (False, True):
        with undisturbed(device=True):
            torch.cuda.manual_seed(7)
            x = torch.ones(1000, device="cuda", requires_grad=True)
            y = checkpoint(lambda x: functional.dropout(x, 0.5), x, use_reentrant=reentrant)
            y.sum().backward()
        gradient = _grad(x)
        kept, passed = int((y != 0).sum()), int((gradient != 0).sum())
        require(0 < kept < 1000, f"dropout kept {kept} of 1000")  # noqa: PLR2004 - half is meant
        require_close(gradient, y, f"mask of backward, {passed} against {kept} kept elements")


def _model(device: str) -> nn.Sequential:
    return mlp().to(device)


def _after_backward(model: nn.Sequential) -> nn.Sequential:
    place = next(model.parameters()).device
    with exact_products():
        loss_of(model(MLP.inputs().to(place)), MLP.targets().to(place)).backward()
    return model


def _require_same(model: nn.Module, expected: dict[str, Tensor], when: str = "") -> None:
    seen = gradients(model)
    require(seen.keys() == expected.keys(), f"there are gradients of {sorted(seen)} only")
    for name, gradient in seen.items():
        what = f"gradient of {name} {when}".rstrip()
        require_close(gradient, expected[name], what, kind=PRODUCT, dtype="float32")


def _grad(leaf: Tensor) -> Tensor:
    if leaf.grad is None:
        raise CheckFailed("no gradient arrived")
    return leaf.grad
