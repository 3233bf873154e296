"""Dtypes that the accelerator lacks: a stand-in with a notice, or an error, where memory is made.

Official point: ``torch.library``. Only a backend whose plugin names a substitute gets these
kernels, and only its own allocations pass them: factories, ``to``, ``double()``, ``Module.cuda``.
Kernels of the adapter that allocate by other means are not seen.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph import environment
from cuda_morph.errors import RefusedError
from cuda_morph.plugins import collect
from cuda_morph.torch_facts import DEVICE_TYPE_IDS, PRIVATE_USE_ONE

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.device.layer import LayerContext
    from cuda_morph.interception import Target

REFUSE = "refuse"
_OPERATORS = ("empty.memory_format", "empty_strided")
_KEYS = {
    PRIVATE_USE_ONE: "PrivateUse1",
    **{number: name.upper() for name, number in DEVICE_TYPE_IDS.items() if name != "cpu"},
}
"""Dispatch key of each device type."""


def apply(context: LayerContext, target: Target) -> None:
    """Registers the allocation kernels if the plugin names a substitute for any dtype."""
    stand_ins = {
        getattr(torch, record.dtype): getattr(torch, record.substitute)
        for _, record in collect("cuda_morph_dtypes", plugin=context.plugin)
        if record.substitute
    }
    key = _KEYS.get(target.type_id)
    if not stand_ins or key is None:
        return
    policy = _Policy(stand_ins, context.backend.display_name)
    library = torch.library.Library("aten", "IMPL")
    context.journal.on_rollback(library._destroy)
    for name in _OPERATORS:
        kernel = torch.library.get_kernel(f"aten::{name}", key)
        library.impl(name, policy.allocation(kernel), key, with_keyset=True)


class _Policy:
    """Chooses the dtype that memory is made in."""

    def __init__(self, stand_ins: dict[Any, Any], device_name: str) -> None:
        self._stand_ins = stand_ins
        self._device_name = device_name
        self._refuse = environment.read(environment.DTYPES) == REFUSE
        self._noticed: set[Any] = set()

    def allocation(self, kernel: Any) -> Callable[..., Any]:
        """Returns a kernel that calls `kernel` with a dtype which the device has."""
        stand_ins, choose = self._stand_ins, self._choose

        def allocate(keyset: Any, *sizes: Any, dtype: Any = None, **options: Any) -> Any:
            if dtype is None:
                dtype = torch.get_default_dtype()
            if dtype in stand_ins:
                dtype = choose(dtype)
            return kernel.call_boxed(keyset, *sizes, dtype=dtype, **options)

        return allocate

    def _choose(self, dtype: Any) -> Any:
        stand_in = self._stand_ins[dtype]
        if self._refuse:
            raise RefusedError(
                f"{self._device_name} has no {dtype}.",
                hint=f"Use {stand_in}, or let it stand in with {environment.DTYPES.name}="
                "substitute.",
            )
        if dtype not in self._noticed:
            self._noticed.add(dtype)
            warnings.warn(
                f"cuda-morph: {self._device_name} has no {dtype}; tensors there are made in "
                f"{stand_in} instead. Set {environment.DTYPES.name}=refuse for an error.",
                UserWarning,
                stacklevel=3,
            )
        return stand_in
