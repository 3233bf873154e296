"""The typed tensor classes of early PyTorch: ``torch.cuda.FloatTensor`` and its siblings.

They are used as constructors, in ``isinstance``, as arguments of ``Tensor.type``, by name, and in
``set_default_tensor_type``. PyTorch builds them in C for NVIDIA devices only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.patching import Journal

_NAMES = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "ByteTensor": torch.uint8,
    "CharTensor": torch.int8,
    "ShortTensor": torch.int16,
    "IntTensor": torch.int32,
    "LongTensor": torch.int64,
    "BoolTensor": torch.bool,
}
_PREFIX = "torch.cuda."


class LegacyTensorType(type):
    """Metaclass of the typed classes: they construct and recognise, but have no instances."""

    dtype: torch.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Returns an ordinary tensor of the class's dtype on the accelerator."""
        kwargs.pop("device", None)
        host = getattr(torch, cls.__name__)
        moved = [value.cpu() if isinstance(value, torch.Tensor) else value for value in args]
        return host(*moved, **kwargs).to(torch.device("cuda"))

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, torch.Tensor) and instance.dtype == cls.dtype and instance.is_cuda
        )


def _typed_class(
    name: str, dtype: torch.dtype, metaclass: type[LegacyTensorType] = LegacyTensorType
) -> LegacyTensorType:
    sparse = metaclass is not LegacyTensorType
    attributes = {
        "dtype": dtype,
        "is_cuda": True,
        "is_sparse": sparse,
        "layout": torch.sparse_coo if sparse else torch.strided,
        "__module__": "torch.cuda.sparse" if sparse else "torch.cuda",
        "__doc__": f"Tensors of {dtype} on the accelerator that stands for CUDA.",
    }
    return metaclass(name, (), attributes)


CLASSES = {name: _typed_class(name, dtype) for name, dtype in _NAMES.items()}


class LegacySparseType(LegacyTensorType):
    """Metaclass of the sparse typed classes."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Builds a sparse tensor on the accelerator."""
        kwargs.pop("device", None)
        return torch.sparse_coo_tensor(*args, dtype=cls.dtype, **kwargs).to(torch.device("cuda"))

    def __instancecheck__(cls, instance: object) -> bool:
        return super().__instancecheck__(instance) and bool(getattr(instance, "is_sparse", False))


SPARSE_CLASSES = {
    name: _typed_class(name, dtype, LegacySparseType)
    for name, dtype in _NAMES.items()
    if name != "BoolTensor"
}
"""PyTorch has no sparse class of Booleans."""


def apply(journal: Journal) -> None:
    """Puts the classes into ``torch.cuda`` and makes their users understand them."""
    journal.update_mapping(vars(torch.cuda), CLASSES)
    journal.update_mapping(vars(torch.cuda.sparse), SPARSE_CLASSES)
    journal.set_attribute(torch.Tensor, "type", _tensor_type)
    default_type = _DefaultType()
    default_type.original = journal.redirect_function(torch.set_default_tensor_type, default_type)


def _resolve(dtype: Any) -> LegacyTensorType | None:
    """Returns the typed class that an argument means, or ``None`` for anything else."""
    if isinstance(dtype, LegacyTensorType):
        return dtype
    if isinstance(dtype, str) and dtype.startswith(_PREFIX):
        return CLASSES.get(dtype[len(_PREFIX) :])
    return None


def _tensor_type(self: Any, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """Returns the type's name without an argument, else casts; CUDA types move as well."""
    typed = _resolve(dtype)
    if typed is not None:
        return self.to(device="cuda", dtype=typed.dtype, non_blocking=non_blocking)
    if dtype is None:
        return torch._C.TensorBase.type(self, **kwargs)
    return torch._C.TensorBase.type(self, dtype, non_blocking, **kwargs)


class _DefaultType:
    """Stands for ``torch.set_default_tensor_type``."""

    original: Callable[[Any], None]

    def __call__(self, t: Any) -> None:
        typed = _resolve(t)
        if typed is None:
            # A host type also ends an accelerator default that was set before.
            torch.set_default_device(None)
            self.original(t)
            return
        torch.set_default_dtype(typed.dtype)
        torch.set_default_device("cuda")
