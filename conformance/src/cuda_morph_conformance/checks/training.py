"""Training and function transforms: several steps, and torch.func, as on the CPU."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cuda_morph_conformance.models import (
    CHAR_TRANSFORMER,
    CONV_NET,
    MLP,
    exact_products,
    loss_of,
    mlp,
    numbers,
    train,
)
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.tolerances import PRODUCT, TRAINING, require_close
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from torch import Tensor

    from cuda_morph_conformance.models import Task
    from cuda_morph_conformance.subject import Subject

_trains = partial(check, level=Level.TRAINS, since="1.0", devices=1)


@_trains("CM-GRAD-030", requires=("autograd.parity",))
def mlp_trains_as_on_the_cpu(_subject: Subject) -> None:
    """Ten steps of a small MLP MUST follow the same run on the CPU in double precision.

    Fix: run the checks of gradients and optimisers first; where those pass, look for an in-place
    operator that writes to a copy, or for work that is read before it is done.
    """
    _require_parity(MLP)


@_trains("CM-GRAD-031", requires=("autograd.parity",))
def conv_net_trains_as_on_the_cpu(_subject: Subject) -> None:
    """Ten steps of a convolutional network MUST follow the CPU, running statistics included.

    Fix: compare convolution, pooling and batch normalisation, forward and backward, one by one; a
    convolution that takes a reduced precision path must honour the precision switches.
    """
    _require_parity(CONV_NET)


@_trains("CM-GRAD-032", requires=("autograd.parity",))
def transformer_trains_as_on_the_cpu(_subject: Subject) -> None:
    """Ten steps of a character transformer MUST follow the same run on the CPU.

    Fix: compare embedding, layer normalisation, attention and cross entropy one by one.
    """
    _require_parity(CHAR_TRANSFORMER)


@_trains("CM-GRAD-033", requires=("autograd.parity",))
def training_repeats(_subject: Subject) -> None:
    """The same training run from the same start MUST give the same losses twice.

    Fix: look for work that is read before it is done, and for memory that is reused too early:
    within the tolerance of parity, but not the same twice, is how races look.
    """
    first, second = train(CHAR_TRANSFORMER, "cuda"), train(CHAR_TRANSFORMER, "cuda")
    # Atomic additions may come in another order; a race does more than that.
    require_close(first.losses, second.losses, "losses of two runs", kind=PRODUCT, dtype="float32")


@_trains("CM-GRAD-034", requires=("autograd.parity",))
def evaluation_differs_from_training(_subject: Subject) -> None:
    """Module.eval MUST switch dropout off and batch normalisation to its running statistics.

    Fix: pass ``train`` and ``training`` on to the kernels instead of assuming one of them.
    """
    import torch

    inputs = CONV_NET.inputs()
    host, device = CONV_NET.build(), CONV_NET.build().cuda()
    with exact_products(), torch.no_grad():
        for model, place in ((host, "cpu"), (device, "cuda")):
            model.train()(inputs.to(place))
        expected, seen = host.eval()(inputs), device.eval()(inputs.cuda())
        require_close(seen, expected, "output in evaluation", kind=PRODUCT)
        kept = torch.nn.Dropout(0.9).cuda().eval()(inputs.cuda())
    require_close(kept, inputs, "dropout in evaluation")


@_trains("CM-GRAD-040", requires=("autograd.transforms",))
def vmap_matches_a_loop(_subject: Subject) -> None:
    """torch.vmap MUST give what a loop over the first dimension gives.

    Fix: leave batching rules to PyTorch; an operator of your own needs
    ``torch.library.register_vmap``.
    """
    import torch

    x, w = numbers(5, 4, seed=1).cuda(), numbers(4, 3).cuda()

    def one(row: Tensor) -> Tensor:
        return torch.softmax(row @ w, dim=-1).cumsum(-1)

    with exact_products():
        batched, looped = torch.vmap(one)(x), torch.stack([one(row) for row in x])
    require(batched.is_cuda, f"the result is on {batched.device}")
    require_close(batched, looped, "vmap", kind=PRODUCT)


@_trains("CM-GRAD-041", requires=("autograd.transforms",))
def per_sample_gradients_match(_subject: Subject) -> None:
    """Mapping torch.func.grad over a batch MUST give one gradient per sample, as on the CPU.

    Fix: see which operator the traceback names; its derivative must be made of operators that vmap
    knows, or have a batching rule.
    """
    from torch.func import functional_call, grad, vmap

    model = mlp()

    def one_loss(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return loss_of(functional_call(model, parameters, (x.unsqueeze(0),)), y.unsqueeze(0))

    found = []
    for place in ("cpu", "cuda"):
        parameters = {n: p.detach() for n, p in mlp().to(place).named_parameters()}
        inputs, targets = MLP.inputs().to(place), MLP.targets().to(place)
        with exact_products():
            found.append(vmap(grad(one_loss), (None, 0, 0))(parameters, inputs, targets))
    for name, gradient in found[1].items():
        require_close(gradient, found[0][name], f"gradients by {name}", kind=PRODUCT)


@_trains("CM-GRAD-042", requires=("autograd.transforms",))
def jacobians_match(_subject: Subject) -> None:
    """jacrev, jacfwd and hessian MUST give what they give on the CPU.

    Fix: forward-mode derivatives need every operator on the way to have one; do not register plain
    kernels under an autograd key, which hides PyTorch's own formulas.
    """
    from torch.func import hessian, jacfwd, jacrev

    x = numbers(4)
    transforms: dict[str, Callable[..., Any]] = {"jacrev": jacrev, "jacfwd": jacfwd}

    def cubes(value: Tensor) -> Tensor:
        return value**3 + value.sum().sin()

    for name, transform in transforms.items():
        seen, expected = transform(cubes)(x.cuda()), transform(cubes)(x)
        require_close(seen, expected, name, kind=PRODUCT)
    curved = hessian(lambda value: cubes(value).sum())
    require_close(curved(x.cuda()), curved(x), "hessian", kind=PRODUCT)


def _require_parity(task: Task) -> None:
    import torch

    expected, seen = train(task, "cpu", dtype=torch.float64), train(task, "cuda")
    options: Any = {"kind": TRAINING, "dtype": "float32"}
    require_close(seen.losses, expected.losses, "losses", **options)
    require(expected.losses[-1] < expected.losses[0], "the reference did not learn")
    for name, value in seen.state.items():
        require_close(value, expected.state[name], name, **options)
