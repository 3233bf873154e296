"""What the CPU lacks where it stands for CUDA."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is
from torch._subclasses.functional_tensor import FunctionalTensor  # noqa: TID253

if TYPE_CHECKING:
    from cuda_morph.interception import Target
    from cuda_morph.patching import Journal


def apply(journal: Journal, target: Target) -> None:
    """Supplies it until rollback."""
    _supply_random_state(journal)
    _supply_operators(journal)
    _move_traced_tensors(journal, target)
    _default_to_bfloat16(journal)
    _hide_accelerator(journal)


def _hide_accelerator(journal: Journal) -> None:
    """Lets ``torch.accelerator`` say that there is none, as it does in a build for CPUs.

    A build for CUDA names CUDA, which it was compiled for, and Dynamo then guards the stream of a
    device that code of the cuda view never has.
    """
    named = torch._C._accelerator_getAccelerator()
    if named is not None and named.type == "cuda":
        journal.set_attribute(torch._C, "_accelerator_getAccelerator", lambda: None)


def _default_to_bfloat16(journal: Journal) -> None:
    """Lets ``torch.cuda.amp.autocast()`` without a dtype use what ``torch.autocast`` uses there.

    PyTorch's default dtype of autocast on the CPU is bfloat16; float16 products are ten times and
    more slower. A dtype that the program names is kept.
    """
    initialiser = vars(torch.cuda.amp.autocast)["__init__"]
    journal.set_defaults(
        initialiser,
        tuple(
            torch.bfloat16 if default is torch.float16 else default
            for default in initialiser.__defaults__
        ),
    )


def _supply_random_state(journal: Journal) -> None:
    """Lets ``torch.cpu`` answer for the state of the CPU's generator.

    Upstream: ``torch.random.fork_rng`` takes ``cuda`` for its default device type and asks the
    module of that type; ``torch.cpu`` has no such functions, the state is kept elsewhere.
    """
    journal.update_mapping(
        vars(torch.cpu), {"get_rng_state": _get_rng_state, "set_rng_state": _set_rng_state}
    )


def _get_rng_state(device: Any = None) -> Any:
    del device
    return torch.default_generator.get_state()


def _set_rng_state(state: Any, device: Any = None) -> None:
    del device
    torch.default_generator.set_state(state)


def _supply_operators(journal: Journal) -> None:
    """Registers kernels for CPU tensors that PyTorch has for accelerators only.

    All memory is the host's and pinning changes nothing, but programs ask for it and check it.
    """
    library = torch.library.Library("aten", "IMPL")
    journal.on_rollback(library._destroy)
    library.impl("record_stream", _accept, "CPU")
    library.impl("_pin_memory", _pin_memory, "CPU")
    library.impl("is_pinned", _is_pinned, "CPU")


def _accept(_tensor: Any, _stream: Any) -> None:
    """Does nothing: memory of a CPU tensor is not reused before the work on it has finished."""


def _pin_memory(tensor: Any, device: Any = None) -> Any:
    """Copies, as pinning does, and marks the storage, which all views of the copy share."""
    del device
    copy = tensor.clone(memory_format=torch.preserve_format)
    copy.untyped_storage().cuda_morph_pinned = True
    return copy


def _is_pinned(tensor: Any, device: Any = None) -> bool:
    del device
    return getattr(tensor.untyped_storage(), "cuda_morph_pinned", False)


def _move_traced_tensors(journal: Journal, target: Target) -> None:
    """Redirects the traced ``cuda()`` to the target device itself.

    Upstream: ``torch/_subclasses/functional_tensor.py`` turns ``cuda()`` into a move to the current
    device's *number*. A number on the CPU makes ``cpu:0``, which the tracer takes for another
    device than ``cpu``. Can go when PyTorch passes a device object there.
    """

    def cuda(self: Any, device: Any = None, *args: Any, **kwargs: Any) -> Any:
        named = device is not None and not isinstance(device, int)
        return self.to(device if named else target.device, *args, **kwargs)

    journal.redirect_function(FunctionalTensor.cuda, cuda)
