"""Tensors of the accelerator that are sent to another process with ``torch.multiprocessing``.

CUDA shares the memory itself. PyTorch has no such way for accelerators from outside, so the
receiver gets a copy, and a notice says so. Parameters that are being trained are refused: who sends
those wants the processes to write to the same weights.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph.errors import BackendUnavailableError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.device.treatments import Notices

_NAME = "sharing a tensor with another process"
_NOTE = "The receiver gets a copy: what one process writes later, the other does not see."

Reduced = tuple["Callable[..., Any]", tuple[Any, ...]]
"""What a pickler stores: a function of this module, and its arguments."""


def reduce_by_copy(tensor: Any, notices: Notices) -> Reduced:
    """Describes a copy of a tensor for the pickler of ``torch.multiprocessing``.

    Args:
        tensor: A dense, nested or sparse tensor on the active backend's device.
        notices: Where the copy is announced, once per activation.

    Returns:
        The function that makes the tensor in the receiving process, and its arguments.

    Raises:
        RefusedError: It is a parameter that is being trained.
        RuntimeError: It requires a gradient and is no leaf, as PyTorch has it for all devices.
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "The gradient of a computed tensor cannot reach back into the process that computed "
            "it; send tensor.detach() to another process."
        )
    is_parameter = isinstance(tensor, torch.nn.Parameter)
    if is_parameter and tensor.requires_grad:
        raise RefusedError(
            "A parameter that is being trained cannot be shared with another process: on this "
            "backend the receiver would get a copy, and train that.",
            hint="Train with DistributedDataParallel, or send a state_dict or a model on the CPU "
            "and move it in the receiver.",
        )
    notices.give(_NAME, _NOTE)
    # As bytes: memory that the receiver would open must live until then, and nobody would keep it.
    values = pickle.dumps(tensor.detach().cpu(), protocol=pickle.HIGHEST_PROTOCOL)
    return rebuild_copy, (values, tensor.device.index, tensor.requires_grad, is_parameter)


def rebuild_copy(values: bytes, index: int | None, requires_grad: bool, is_parameter: bool) -> Any:
    """Makes the tensor in the receiving process.

    Args:
        values: The pickled tensor, on the CPU.
        index: Index of the device.
        requires_grad: Whether the tensor asks for a gradient.
        is_parameter: Whether it was a parameter.

    Raises:
        BackendUnavailableError: The receiving process has no device for it.
    """
    try:
        # From a pickle that is being read already: no other trust is needed than for that.
        tensor = pickle.loads(values).to(torch.device("cuda", index or 0))  # noqa: S301
    except (AssertionError, RuntimeError) as error:
        raise BackendUnavailableError(
            f"A tensor of device {index or 0} arrived in a process without such a device: {error}",
            hint="Start the program with cuda-morph run, or activate in the receiver too.",
        ) from error
    if is_parameter:
        return torch.nn.Parameter(tensor, requires_grad=requires_grad)
    return tensor.requires_grad_(requires_grad)
