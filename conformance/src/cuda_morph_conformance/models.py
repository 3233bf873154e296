"""The fixed small models that checks train and run on a device and on the reference.

Shapes, seeds and steps never change within a checklist version. Parameters and inputs are drawn on
the CPU from generators of their own, so no model disturbs, or depends on, the state of anybody's
random numbers.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.tolerances import SEED, STEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor, nn

BATCH = 8
VOCABULARY = 32
CONTEXT = 16
WIDTH = 32


@dataclass(frozen=True, slots=True)
class Task:
    """A model and its data; the loss is the mean cross entropy."""

    name: str
    build: Callable[[], nn.Module]
    inputs: Callable[[], Tensor]
    targets: Callable[[], Tensor]


@dataclass(slots=True)
class Run:
    """What a training run left behind, on the CPU in float64."""

    losses: Tensor
    state: dict[str, Tensor]
    """Parameters and buffers by name."""


def numbers(*shape: int, seed: int = 0) -> Tensor:
    """Returns normally distributed float32 numbers on the CPU, the same at every call."""
    import torch

    return torch.randn(*shape, generator=torch.Generator().manual_seed(SEED + seed), device="cpu")


def integers(limit: int, *shape: int, seed: int = 0) -> Tensor:
    """Returns int64 numbers from 0 below `limit` on the CPU, the same at every call."""
    import torch

    generator = torch.Generator().manual_seed(SEED + seed)
    return torch.randint(limit, shape, generator=generator, device="cpu")


@contextmanager
def undisturbed(*, device: bool = False) -> Iterator[None]:
    """Puts the default generator of the CPU, and if asked that of the device, back afterwards."""
    import torch

    with torch.random.fork_rng(devices=[0] if device else [], device_type="cuda"):
        yield


@contextmanager
def exact_products() -> Iterator[None]:
    """Asks for full float32 precision of matrix products for the time of the block."""
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def filled(model: nn.Module) -> nn.Module:
    """Gives every weight and bias fixed numbers of the usual size; norms keep their ones.

    Args:
        model: On the CPU; changed in place.

    Returns:
        The same model.
    """
    import torch

    with torch.no_grad():
        for position, (name, parameter) in enumerate(model.named_parameters()):
            if parameter.dim() == 1 and not name.endswith("bias"):
                continue
            scale = parameter[0].numel() ** -0.5 if parameter.dim() > 1 else 0.1
            parameter.copy_(scale * numbers(*parameter.shape, seed=100 + position))
    return model


def mlp() -> nn.Sequential:
    """Returns two linear layers with an activation between them."""
    from torch import nn

    with undisturbed():
        model = nn.Sequential(nn.Linear(16, WIDTH), nn.GELU(), nn.Linear(WIDTH, 4))
    filled(model)
    return model


def conv_net() -> nn.Module:
    """Returns a small image classifier with batch normalisation and pooling."""
    from torch import nn

    with undisturbed():
        model = nn.Sequential(
            # No bias before a norm: its gradient is rounding noise, which Adam blows up.
            nn.Conv2d(3, 8, 3, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, stride=2, bias=False),
            nn.GroupNorm(2, 8),
            nn.SiLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(8, 4),
        )
    return filled(model)


def char_transformer() -> nn.Module:
    """Returns a language model of one causal transformer block."""
    with undisturbed():
        model = _char_transformer()
    return filled(model)


MLP = Task("mlp", mlp, lambda: numbers(BATCH, 16, seed=1), lambda: integers(4, BATCH, seed=2))
CONV_NET = Task(
    "conv net",
    conv_net,
    lambda: numbers(BATCH, 3, 12, 12, seed=1),
    lambda: integers(4, BATCH, seed=2),
)
CHAR_TRANSFORMER = Task(
    "char transformer",
    char_transformer,
    lambda: integers(VOCABULARY, BATCH, CONTEXT, seed=1),
    lambda: integers(VOCABULARY, BATCH, CONTEXT, seed=2),
)
TASKS = (MLP, CONV_NET, CHAR_TRANSFORMER)


def train(
    task: Task,
    device: str,
    *,
    dtype: Any = None,
    optimizer: Callable[[Any], Any] | None = None,
    steps: int = STEPS,
) -> Run:
    """Train a model from its fixed start, on its one batch.

    Args:
        task: What to train.
        device: Where; ``"cpu"`` for a reference.
        dtype: Dtype of parameters and inputs; float32 unless given.
        optimizer: Makes the optimiser from the parameters; SGD with momentum unless given.
        steps: How often to step.

    Returns:
        Losses, and the state of the model.
    """
    import torch

    dtype = dtype or torch.float32
    model = task.build().to(device=device, dtype=dtype)
    inputs, targets = task.inputs().to(device), task.targets().to(device)
    inputs = inputs.to(dtype) if inputs.is_floating_point() else inputs
    make = optimizer or (lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9))
    stepper = make(model.parameters())
    losses = []
    with exact_products():
        for _ in range(steps):
            stepper.zero_grad()
            loss = loss_of(model(inputs), targets)
            loss.backward()
            stepper.step()
            losses.append(loss.detach())
    return Run(torch.stack(losses).cpu().double(), snapshot(model.state_dict()))


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    """Returns the mean cross entropy over all positions."""
    from torch.nn import functional

    return functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))


def gradients(model: nn.Module) -> dict[str, Tensor]:
    """Returns copies of a module's gradients by name, on the CPU in float64."""
    return snapshot({n: p.grad for n, p in model.named_parameters() if p.grad is not None})


def snapshot(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Returns copies of tensors by name, on the CPU in float64."""
    return {name: value.detach().cpu().double().clone() for name, value in tensors.items()}


def _char_transformer() -> nn.Module:
    import torch
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.before_attention, self.before_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
            self.out = nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, hidden: Tensor) -> Tensor:
            batch, length, _ = hidden.shape
            qkv = self.qkv(self.before_attention(hidden)).view(batch, length, 3, 2, WIDTH // 2)
            query, key, value = qkv.permute(2, 0, 3, 1, 4)
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            hidden = hidden + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
            added: Tensor = self.down(functional.gelu(self.up(self.before_mlp(hidden))))
            return hidden + added

    class CharTransformer(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.token, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.block, self.norm = Block(), nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

        def forward(self, tokens: Tensor) -> Tensor:
            places = torch.arange(tokens.shape[1], device=tokens.device)
            hidden = self.token(tokens) + self.place(places)
            logits: Tensor = self.head(self.norm(self.block(hidden)))
            return logits

    return CharTransformer()
