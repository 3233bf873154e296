"""What the child process does for ``cuda-morph compile``: it imports PyTorch and Dynamo."""

from __future__ import annotations

from typing import Any

from cuda_morph.compile_backend import get_compile_backend


def ask(backend: str) -> dict[str, Any]:
    """Activates a backend in this process and asks PyTorch's compilers.

    Args:
        backend: As for ``activate``; nothing is activated when empty.

    Returns:
        The choice, the device, and every registered backend with tags and origin.
    """
    device: dict[str, Any] = {"device_type": None, "simulated": False}
    if backend:
        from cuda_morph.activation import activate

        active = activate(backend, fallback="error").backend
        device = {"device_type": active.device_type, "simulated": active.simulated}
    from torch._dynamo.backends import registry

    choice = get_compile_backend()
    # Reading the tags loads no entry point; looking the choice up loads its own.
    names = registry.list_backends(exclude_tags=())
    registry.lookup_backend(choice)
    registered = [_described(registry, name) for name in names]
    return {"choice": choice, "registered": registered, **device}


def _described(registry: Any, name: str) -> tuple[str, list[str], str]:
    function = registry._COMPILER_FNS.get(name)
    tags = [str(tag) for tag in getattr(function, "_tags", ())]
    return name, tags, str(getattr(function, "__module__", ""))


def compile_and_compare(backend: str) -> dict[str, Any]:
    """Compiles a small function and compares its result with PyTorch's own.

    Args:
        backend: What `ask` activated.

    Returns:
        Nothing more than that it went well.

    Raises:
        RuntimeError: The compiled function gives another result.
    """
    import torch

    choice, device = get_compile_backend(), "cuda" if backend else "cpu"

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) * 2 + x.sum()

    data = torch.linspace(-3, 3, 64)
    found = torch.compile(function, backend=choice)(data.to(device)).cpu()
    if not torch.allclose(found, function(data), rtol=1e-4, atol=1e-4):
        raise RuntimeError(f"a function compiled with {choice} gives another result")
    return {}
