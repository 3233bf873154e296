"""Faults of kernels: an operator that the device computes in another way than PyTorch says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fault import on_device

_libraries: list[Any] = []


def _register(operator: str, kernel: Callable[..., Any], key: str = "PrivateUse1") -> None:
    import torch

    namespace, _, name = operator.partition("::")
    library = torch.library.Library(namespace, "IMPL")
    library.impl(name, kernel, key)
    _libraries.append(library)


@on_device("CM-MEM-021")
def running_out_of_memory_is_hidden(_device: Any) -> None:
    """Where memory is short, a factory returns an empty tensor."""
    import torch

    def ones(size: Any, **options: Any) -> Any:
        try:
            return torch.empty(size, **options).fill_(1)
        except torch.OutOfMemoryError:
            return torch.empty(0, **options)

    _register("aten::ones", ones)


@on_device("CM-AMP-001")
def autocast_ignores_bfloat16(_device: Any) -> None:
    """Autocast to bfloat16 leaves matrix products in float32."""
    import torch

    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)

    def mm(left: Any, right: Any) -> Any:
        dtype = torch.get_autocast_dtype("sim")
        with torch._C._ExcludeDispatchKeyGuard(keys):
            if dtype == torch.float16:
                left, right = left.to(dtype), right.to(dtype)
            return torch.ops.aten.matmul(left, right)

    _register("aten::matmul", mm, "AutocastPrivateUse1")


@on_device("CM-AMP-032")
def not_a_number_is_not_found(_device: Any) -> None:
    """Gradients are looked at for infinities only, and NaN reaches the weights."""

    def unscale(gradients: Any, found: Any, inverse: Any) -> None:
        for gradient in gradients:
            found.copy_(found.maximum(gradient.isinf().any().to(found.dtype)))
            gradient.mul_(inverse)

    _register("aten::_amp_foreach_non_finite_check_and_unscale_", unscale)


@on_device("CM-AMP-033")
def the_scale_never_grows(_device: Any) -> None:
    """The scale falls after an infinity, and never grows again."""

    def update(scale: Any, tracker: Any, found: Any, _grow: float, fall: float, _n: int) -> Any:
        if found.item():
            scale.mul_(fall)
            tracker.zero_()
        else:
            tracker.add_(1)
        return scale

    _register("aten::_amp_update_scale_", update)


@on_device("CM-OPT-003")
def fused_adagrad_forgets_the_sum(_device: Any) -> None:
    """The fused Adagrad divides by the last gradient alone."""

    def adagrad(params: Any, grads: Any, sums: Any, _steps: Any, **options: Any) -> None:
        import torch

        for param, grad, total in zip(params, grads, sums, strict=True):
            with torch.no_grad():
                total.copy_(grad * grad)
                param.sub_(options["lr"] * grad / (total.sqrt() + options["eps"]))

    _register("aten::_fused_adagrad_", adagrad)


@on_device("CM-GRAD-012")
def repeated_indices_count_once(_device: Any) -> None:
    """The gradient of an index that is used several times is that of its last use."""
    import torch

    def index_put(target: Any, indices: Any, values: Any, _accumulate: bool, _unsafe: bool) -> Any:
        host = [index.cpu() if index is not None else None for index in indices]
        made = torch.ops.aten.index_put(target.cpu(), host, values.cpu(), False)
        return target.copy_(made)

    _register("aten::_index_put_impl_", index_put)


@on_device("CM-RNG-011")
def a_sampler_ignores_its_generator(_device: Any) -> None:
    """Sampling with weights takes the default generator, whichever it is given."""
    import torch

    def multinomial(weights: Any, count: int, replacement: bool = False, *, generator: Any = None):
        drawn = torch.multinomial(weights.cpu(), count, replacement)
        return drawn.to(weights.device)

    _register("aten::multinomial", multinomial)


@on_device("CM-DTYP-016")
def angles_have_the_other_sign(_device: Any) -> None:
    """The angle of a complex number in single precision has the other sign."""
    import torch

    def angle(x: Any) -> Any:
        found = torch.angle(x.cpu()).to(x.device)
        return -found if x.dtype == torch.complex64 else found

    _register("aten::angle", angle)


@on_device("CM-COMP-012")
def compiled_code_is_not_compiled(_device: Any) -> None:
    """torch.compile falls back to single operators without a word."""
    import torch._inductor.compile_fx as inductor

    inductor.compile_fx = lambda graph, _inputs, **_options: graph.forward


@on_device("CM-IO-011")
def files_carry_the_vendors_name(_device: Any) -> None:
    """Files of tensors carry the vendor's own device name in both views."""
    import torch

    def tag(storage: Any) -> str | None:
        ours = storage.device.type not in ("cpu", "meta")
        return f"sim:{storage.device.index}" if ours else None

    def restore(storage: Any, location: str) -> Any:
        kind, _, index = location.partition(":")
        if kind != "sim":
            return None
        made = torch.UntypedStorage(storage.nbytes(), device=f"cuda:{index or 0}")
        return made.copy_(storage)

    torch.serialization.register_package(1, tag, restore)
