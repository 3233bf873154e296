"""Automatic mixed precision: autocast in all its spellings decides dtypes on the device."""

from __future__ import annotations

import threading
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.models import MLP, gradients, loss_of, mlp, numbers
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.tolerances import PRODUCT, TRAINING, require_close
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from cuda_morph_conformance.subject import Subject

_runs = partial(check, level=Level.RUNS, since="1.0", devices=1)
_trains = partial(check, level=Level.TRAINS, since="1.0", devices=1)


@_runs("CM-AMP-001", requires=("amp.autocast", "amp.bfloat16"))
def bfloat16_products(_subject: Subject) -> None:
    """Under autocast to bfloat16, matrix products of float32 tensors MUST give bfloat16.

    Fix: register autocast kernels for the device's autocast key, as PyTorch's guide for
    PrivateUse1 shows, or claim not_yet for ``amp.bfloat16``.
    """
    import torch

    _require_products_in(torch.bfloat16)


@_runs("CM-AMP-002", requires=("amp.autocast", "amp.float16"))
def float16_products(_subject: Subject) -> None:
    """Under autocast to float16, matrix products of float32 tensors MUST give float16.

    Fix: register autocast kernels for the device's autocast key, or claim not_yet for
    ``amp.float16`` where the hardware has no float16.
    """
    import torch

    _require_products_in(torch.float16)


@_runs("CM-AMP-003", requires=("amp.autocast",))
def default_dtype_is_a_half(_subject: Subject) -> None:
    """Autocast without a dtype MUST compute in float16 or bfloat16, never in float32 silently.

    Fix: let ``get_amp_supported_dtype`` of the device module begin with the dtype to prefer.
    """
    import torch

    default = torch.get_autocast_dtype("cuda")
    require(default in {torch.float16, torch.bfloat16}, f"the default dtype is {default}")
    with torch.autocast("cuda"):
        require(_product() == default, f"{_product()}, while the default dtype is {default}")


@_runs("CM-AMP-004", requires=("amp.autocast",))
def every_spelling_switches(_subject: Subject) -> None:
    """torch.autocast and torch.amp.autocast MUST switch the device, as block and as decorator.

    Fix: the name ``cuda`` reaches PyTorch as a string; see which spelling failed and its traceback.
    """
    import torch

    dtype = torch.get_autocast_dtype("cuda")
    place = torch.empty(0, device="cuda").device.type
    spellings: dict[str, Callable[[], Any]] = {
        "torch.autocast('cuda')": lambda: torch.autocast("cuda"),
        "torch.autocast(device_type='cuda')": lambda: torch.autocast(device_type="cuda"),
        "torch.autocast(tensor.device.type)": lambda: torch.autocast(place),
        "torch.amp.autocast('cuda')": lambda: torch.amp.autocast("cuda"),
    }
    for name, make in spellings.items():
        with make():
            require(_product() == dtype, f"{name}: {_product()}, expected {dtype}")
        decorated = make()(_product)
        require(decorated() == dtype, f"@{name}: {decorated()}, expected {dtype}")
    require(_product() == torch.float32, f"{_product()} after the blocks")


@_runs("CM-AMP-005", requires=("amp.legacy",))
def legacy_spelling_switches(_subject: Subject) -> None:
    """torch.cuda.amp.autocast MUST switch the device, as block and as decorator.

    Fix: run CM-AMP-004 first; the old class only passes ``cuda`` on to the new one.
    """
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        plain, off = torch.cuda.amp.autocast(), torch.cuda.amp.autocast(enabled=False)
        with plain:
            require(_product() == torch.get_autocast_dtype("cuda"), f"block: {_product()}")
        require(plain(_product)() == torch.get_autocast_dtype("cuda"), "the decorator is off")
        with off:
            require(_product() == torch.float32, f"enabled=False: {_product()}")


@_runs("CM-AMP-006", requires=("amp.autocast",))
def blocks_nest(_subject: Subject) -> None:
    """A block with enabled=False inside autocast MUST compute in float32, and the outer one go on.

    Fix: keep the switch in PyTorch (``torch.is_autocast_enabled``) instead of a flag of your own.
    """
    import torch

    dtype = torch.get_autocast_dtype("cuda")
    with torch.autocast("cuda"):
        with torch.autocast("cuda", enabled=False):
            require(_product() == torch.float32, f"enabled=False: {_product()}")
        require(_product() == dtype, f"after the inner block: {_product()}")
    require(_product() == torch.float32, f"after both: {_product()}")


@_runs("CM-AMP-007", requires=("amp.autocast",))
def sensitive_operators_stay_in_float32(_subject: Subject) -> None:
    """Under autocast, softmax, norms, losses and sums of half tensors MUST give float32.

    Fix: register the operators of PyTorch's list "ops that autocast to float32" for the device's
    autocast key as well (https://docs.pytorch.org/docs/stable/amp.html).
    """
    import torch
    from torch.nn import functional

    with torch.autocast("cuda"):
        half = numbers(4, 4).cuda().to(torch.get_autocast_dtype("cuda"))
        labels = torch.zeros(4, dtype=torch.long, device="cuda")
        results = {
            "softmax": half.softmax(-1),
            "log_softmax": half.log_softmax(-1),
            "layer_norm": functional.layer_norm(half, (4,)),
            "cross_entropy": functional.cross_entropy(half, labels),
            "mse_loss": functional.mse_loss(half, half * 2),
            "exp": half.exp(),
            "pow": half**2,
            "sum": half.sum(),
        }
    wrong = {name: str(value.dtype) for name, value in results.items() if value.dtype.itemsize < 4}  # noqa: PLR2004
    require(not wrong, f"not float32: {wrong}")


@_runs("CM-AMP-008", requires=("amp.autocast",))
def mixed_inputs_are_widened(_subject: Subject) -> None:
    """Under autocast, cat and stack of half and float32 tensors MUST give float32.

    Fix: register the operators of PyTorch's list "ops that promote to the widest input type".
    """
    import torch

    full = numbers(2, 2).cuda()
    with torch.autocast("cuda"):
        half = full.to(torch.get_autocast_dtype("cuda"))
        joined, stacked = torch.cat([half, full]), torch.stack([half, full])
    require(joined.dtype == torch.float32, f"cat gives {joined.dtype}")
    require(stacked.dtype == torch.float32, f"stack gives {stacked.dtype}")


@_runs("CM-AMP-009", requires=("amp.autocast",))
def state_can_be_read_and_set(_subject: Subject) -> None:
    """The functions that read and set autocast's state MUST take cuda, and be restored by blocks.

    Fix: keep the state in PyTorch; the adapter needs none of its own.
    """
    import torch

    require(torch.amp.is_autocast_available("cuda"), "is_autocast_available('cuda') is False")
    require(not torch.is_autocast_enabled("cuda"), "autocast is on outside any block")
    before = torch.get_autocast_dtype("cuda")
    other = torch.bfloat16 if before == torch.float16 else torch.float16
    try:
        torch.set_autocast_dtype("cuda", other)
        require(torch.get_autocast_dtype("cuda") == other, "set_autocast_dtype has no effect")
    finally:
        torch.set_autocast_dtype("cuda", before)
    try:
        with torch.autocast("cuda"):
            require(torch.is_autocast_enabled("cuda"), "is_autocast_enabled('cuda') is False")
            raise KeyError  # noqa: TRY301 - an exception on its way through the block
    except KeyError:
        require(not torch.is_autocast_enabled("cuda"), "autocast stayed on after an exception")


@_runs("CM-AMP-010", requires=("amp.autocast",))
def state_belongs_to_the_thread(_subject: Subject) -> None:
    """Autocast in one thread MUST NOT switch other threads.

    Fix: keep the state in PyTorch, where it is a thread's own.
    """
    import torch

    seen: list[Any] = []
    with torch.autocast("cuda"):
        thread = threading.Thread(target=lambda: seen.append(_product()))
        thread.start()
        thread.join()
    require(seen == [torch.float32], f"another thread computed in {seen}")


@_runs("CM-AMP-011", requires=("amp.autocast",))
def autocast_leaves_the_cpu_alone(_subject: Subject) -> None:
    """Autocast for cuda MUST NOT change the dtype of computations on the CPU.

    Fix: redirect the device type's name to the accelerator's key only.
    """
    import torch

    if torch.empty(0, device="cuda").device == torch.empty(0, device="cpu").device:
        return  # the CPU is the accelerator
    with torch.autocast("cuda"):
        host = numbers(4, 4)
        require((host @ host).dtype == torch.float32, f"the CPU computed {(host @ host).dtype}")


@_trains("CM-AMP-012", requires=("amp.autocast",))
def gradients_keep_the_dtype_of_weights(_subject: Subject) -> None:
    """Gradients of float32 weights under autocast MUST be float32, and close to those without it.

    Fix: let the cast inside autocast be PyTorch's own differentiable one.
    """
    import torch

    expected, model = mlp(), mlp().cuda()
    loss_of(expected(MLP.inputs()), MLP.targets()).backward()
    with torch.autocast("cuda"):
        loss = loss_of(model(MLP.inputs().cuda()), MLP.targets().cuda())
    loss.backward()
    reference = gradients(expected)
    for name, parameter in model.named_parameters():
        gradient = parameter.grad
        require(gradient is not None, f"{name} has no gradient")
        require(gradient.dtype == torch.float32, f"gradient of {name} is {gradient.dtype}")
        half = str(torch.get_autocast_dtype("cuda")).removeprefix("torch.")
        require_close(gradient, reference[name], f"gradient of {name}", kind=PRODUCT, dtype=half)


@_trains("CM-AMP-013", requires=("amp.autocast",))
def casts_of_weights_are_dropped(_subject: Subject) -> None:
    """A weight that changes between two autocast blocks MUST be cast again in the second.

    Fix: use PyTorch's cache of casts, which the end of the outermost block clears.
    """
    import torch

    weight = torch.ones(4, 4, device="cuda", requires_grad=True)
    x = torch.eye(4, device="cuda")
    results = []
    for _ in range(2):
        with torch.autocast("cuda"):
            results.append((x @ weight).float())
        with torch.no_grad():
            weight.add_(1)
    require_close(results[1], results[0] + 1, "the product after the weight changed")


@_trains("CM-AMP-014", requires=("amp.autocast", "amp.bfloat16"))
def bfloat16_training_follows(_subject: Subject) -> None:
    """Training under autocast to bfloat16 MUST follow float32 training within its precision.

    Fix: keep weights, their gradients and the optimiser's state in float32; only products change.
    """
    import torch

    losses = []
    for enabled in (False, True):
        model = mlp().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        inputs, targets = MLP.inputs().cuda(), MLP.targets().cuda()
        for _ in range(5):
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=enabled):
                loss = loss_of(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.detach())
    require_close(losses[1], losses[0], "the last loss", kind=TRAINING, dtype="bfloat16")


@_trains("CM-AMP-015", requires=("amp.custom_fwd",))
def custom_functions_follow_autocast(_subject: Subject) -> None:
    """custom_fwd and custom_bwd for cuda MUST cast device inputs and carry the state to backward.

    Fix: see that ``torch.amp.custom_fwd`` sees the device type that tensors of the device have.
    """
    import torch

    _require_casts(
        partial(torch.amp.custom_fwd, device_type="cuda"), torch.amp.custom_bwd(device_type="cuda")
    )


@_trains("CM-AMP-016", requires=("amp.custom_fwd", "amp.legacy"))
def legacy_custom_functions_follow_autocast(_subject: Subject) -> None:
    """torch.cuda.amp.custom_fwd and custom_bwd MUST do what their successors do.

    Fix: run CM-AMP-015 first; the old decorators only pass ``cuda`` on to the new ones.
    """
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        _require_casts(torch.cuda.amp.custom_fwd, torch.cuda.amp.custom_bwd)


def _require_casts(forward_decorator: Any, backward_decorator: Any) -> None:
    import torch

    seen: dict[str, Any] = {}

    class Casting(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        @forward_decorator(cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
        def forward(_ctx: Any, x: Tensor) -> Tensor:
            seen["cast"] = (x.dtype, _product())
            return x * 2

        @staticmethod
        @backward_decorator  # type: ignore[untyped-decorator]
        def backward(_ctx: Any, gradient: Tensor) -> Tensor:
            seen["backward"] = _product()
            return gradient * 2

    class Following(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        @forward_decorator  # type: ignore[untyped-decorator]
        def forward(_ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        @backward_decorator  # type: ignore[untyped-decorator]
        def backward(_ctx: Any, gradient: Tensor) -> Tensor:
            seen["following"] = _product()
            return gradient * 2

    half = torch.get_autocast_dtype("cuda")
    for function in (Casting, Following):
        x = torch.ones(2, device="cuda", dtype=half, requires_grad=True)
        with torch.autocast("cuda"):
            y = function.apply(x)
        y.sum().backward()
    full = torch.float32
    expected = {"cast": (full, full), "backward": full, "following": half}
    require(seen == expected, f"dtypes were {seen}, expected {expected}")


def _require_products_in(dtype: Any) -> None:
    import torch
    from torch.nn import functional

    a, b = numbers(8, 8, seed=1), numbers(8, 8, seed=2)
    image, kernel = numbers(1, 2, 6, 6), numbers(3, 2, 3, 3)
    with torch.autocast("cuda", dtype=dtype):
        results = {
            "matmul": (a.cuda() @ b.cuda(), a @ b),
            "linear": (functional.linear(a.cuda(), b.cuda()), a @ b.T),
            "bmm": (torch.bmm(a.cuda()[None], b.cuda()[None]), (a @ b)[None]),
            "conv2d": (
                functional.conv2d(image.cuda(), kernel.cuda()),
                functional.conv2d(image.double(), kernel.double()),
            ),
        }
    for name, (seen, expected) in results.items():
        require(seen.dtype == dtype, f"{name} gives {seen.dtype} under autocast to {dtype}")
        require(seen.is_cuda, f"{name} gives a tensor on {seen.device}")
        require_close(seen / 8, expected / 8, name, kind=PRODUCT)


def _product() -> Any:
    import torch

    x = torch.ones(2, 2, device="cuda")
    return (x @ x).dtype
