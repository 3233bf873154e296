"""Custom operators with kernels for CUDA: found on the accelerator too.

``torch.library`` files a kernel under the key it is told. A kernel for ``"CUDA"`` would never be
found, because no tensor has that key here; so each gets a twin under the accelerator's key while
the activation lasts. The CPU keeps a kernel of its own where an operator has both.

PyTorch's own kernels for CUDA get none: since 2.13 ``torch._native`` files Triton kernels over
those of aten, and what they fall back to is CUDA's kernel.

Upstream: ``torch/library.py`` and ``torch/_library/custom_ops.py`` name the key in the API. Can go
when keys are given as devices everywhere.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch  # noqa: TID253 - loaded at activation only, when torch already is
from torch._library import custom_ops  # noqa: TID253

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.interception import Target
    from cuda_morph.patching import Journal

_CUDA = "CUDA"
_NATIVE = "torch._native"
_NATIVE_SPACE = "_native"


def apply(journal: Journal, target: Target) -> None:
    """Registers twins for the kernels that are there, and for those that will come."""
    twins = _Twins(str(torch._C._dispatch_key_for_device(target.device_type)))
    journal.on_rollback(twins.destroy_all)
    # Thousands of entries, of which none or few are for CUDA.
    for entry in sorted([entry for entry in torch.library._impls if _CUDA in entry]):
        space, name, key = entry.split("/")
        if _CUDA in key and not _is_pytorch_s_own(space, name, key):
            twins.add_early(space, name, key)
    twins.original = journal.redirect_function(torch.library.Library.impl, twins.impl)
    # Else the string "cuda" is already the accelerator's key here, and overrides the CPU's kernel.
    named_key = journal.redirect_function(
        torch.library._device_type_to_key,
        lambda device_type: _CUDA if device_type == "cuda" else named_key(device_type),
    )
    _follow_custom_ops(journal, target)


def _is_pytorch_s_own(space: str, name: str, key: str) -> bool:
    registry = sys.modules.get(f"{_NATIVE}.registry")
    return space == _NATIVE_SPACE or (
        space == "aten" and (name, key) in getattr(registry, "_aten_override_libs", ())
    )


class _Twins:
    """The kernels that this activation has registered beside those for CUDA."""

    original: Callable[..., Any]

    def __init__(self, accelerator_key: str) -> None:
        self._accelerator_key = accelerator_key
        self._libraries: dict[tuple[str, str], Any] = {}

    def impl(
        self,
        library: Any,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        **options: Any,
    ) -> None:
        """Stands for ``torch.library.Library.impl``."""
        key = dispatch_key or library.dispatch_key
        name = library._resolve_op_name(op_name, "impl").split("::")[-1]
        # The user's own kernel for the accelerator takes the place of a twin.
        self._destroy(f"{library.ns}::{name}", key)
        self.original(library, op_name, fn, dispatch_key, **options)
        own = str(getattr(fn, "__module__", "")).startswith(_NATIVE)
        if _CUDA in key and library.ns != _NATIVE_SPACE and not own:
            twin = self._add(
                library.ns, name, key, fn, with_keyset=options.get("with_keyset", False)
            )
            if twin is not None:
                library._registration_handles.append(twin)

    def add_early(self, space: str, name: str, key: str) -> None:
        """Registers a twin that calls the kernel which is registered for CUDA at that time."""
        qualified = f"{space}::{name}"
        if torch._C._dispatch_kernel_for_dispatch_key_is_fallthrough(qualified, key):
            return
        keys = torch._C.DispatchKeySet(torch._C._parse_dispatch_key(key))
        packet, _, overload = name.partition(".")

        def forward(*args: Any, **kwargs: Any) -> Any:
            operator = getattr(getattr(getattr(torch.ops, space), packet), overload or "default")
            return operator.redispatch(keys, *args, **kwargs)

        self._add(space, name, key, forward, with_keyset=False)

    def _add(
        self, space: str, name: str, key: str, function: Callable[..., Any], *, with_keyset: bool
    ) -> Any:
        accelerator_key = key.replace(_CUDA, self._accelerator_key)
        if f"{space}/{name}/{accelerator_key}" in torch.library._impls:
            return None
        qualified = f"{space}::{name}"
        if accelerator_key == "CPU" and torch._C._dispatch_has_kernel_for_dispatch_key(
            qualified, accelerator_key
        ):
            return None
        self._destroy(qualified, accelerator_key)
        twin = _Twin(space)
        twin.library.m.impl(name, accelerator_key, function, with_keyset)
        self._libraries[qualified, accelerator_key] = twin
        return twin

    def _destroy(self, qualified: str, key: str) -> None:
        twin = self._libraries.pop((qualified, key), None)
        if twin is not None:
            twin.destroy()

    def destroy_all(self) -> None:
        """Takes back every twin that is left."""
        while self._libraries:
            self._libraries.popitem()[1].destroy()


class _Twin:
    """One registration; goes with the library of the kernel that it stands beside."""

    def __init__(self, space: str) -> None:
        self.library: Any = torch.library.Library(space, "FRAGMENT")

    def destroy(self) -> None:
        """Unregisters; a second call does nothing."""
        self.library._destroy()


def _follow_custom_ops(journal: Journal, target: Target) -> None:
    """Makes `custom_op` know its CUDA kernels under the name that devices have here."""
    kernels = _KernelNames("cuda" if target.masked else target.device_type)
    for operator in list(custom_ops.OPDEFS.values()):
        kernels.add_name(operator._backend_fns)
    kernels.original = journal.redirect_function(
        custom_ops.CustomOpDef.register_kernel, kernels.register
    )
    journal.on_rollback(kernels.remove_names)


class _KernelNames:
    """Keeps the second name of CUDA kernels in the tables of ``CustomOpDef``."""

    original: Callable[..., Any]

    def __init__(self, name: str) -> None:
        self._name = name
        self._named: list[dict[Any, Any]] = []

    def register(self, operator: Any, device_types: Any, fn: Any = None) -> Any:
        """Stands for ``CustomOpDef.register_kernel``."""
        if fn is None:
            return lambda later: self.register(operator, device_types, later)
        one = device_types is None or isinstance(device_types, str)
        wanted = [device_types] if one else list(device_types)
        kernels = operator._backend_fns
        self._remove_name(kernels)
        if self._name == "cpu" and "cuda" in wanted and "cpu" in {*wanted, *kernels}:
            # One device and two kernels: the one written for it stays.
            wanted.remove("cuda")
            kernels["cuda"] = fn
        result = self.original(operator, wanted if wanted != [None] else None, fn)
        self.add_name(kernels)
        return result

    def add_name(self, kernels: dict[Any, Any]) -> None:
        """Files a CUDA kernel under the accelerator's name, unless there is one of its own."""
        if "cuda" in kernels and self._name not in kernels:
            kernels[self._name] = kernels["cuda"]
            self._named.append(kernels)

    def _remove_name(self, kernels: dict[Any, Any]) -> None:
        second = kernels.get(self._name)
        if self._name != "cuda" and second is not None and second is kernels.get("cuda"):
            del kernels[self._name]

    def remove_names(self) -> None:
        """Takes every second name back."""
        for kernels in self._named:
            self._remove_name(kernels)
