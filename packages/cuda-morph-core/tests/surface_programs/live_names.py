"""Prints the CUDA names that the installed torch really has, as JSON.

A name is public when no part of it starts with an underscore and its module does not merely import
it from the standard library, another package or a private module of torch.
"""

from __future__ import annotations

import ast
import inspect
import json
import pkgutil
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

# How torch's Python code spells a function of torch._C that only a CUDA build has.
MENTION = re.compile(
    r"""(?:\b_C\.|hasattr\(torch\._C,\s*["']|getattr\(torch\._C,\s*["'])(_cuda_\w+)"""
)
STUB = re.compile(r"^(?:def|class) (_cuda_\w+)", re.MULTILINE)


def modules() -> Iterator[ModuleType]:
    """Returns torch.cuda and its public submodules."""
    yield torch.cuda
    for found in pkgutil.walk_packages(torch.cuda.__path__, "torch.cuda."):
        if not any(part.startswith("_") for part in found.name.split(".")):
            yield import_module(found.name)


def foreign(module: ModuleType) -> set[str]:
    """Returns the names that a module imports from elsewhere, or from torch's private parts."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Import):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            root, *parts = (node.module or "").split(".")
            private = any(part.startswith("_") and part != "_C" for part in parts)
            if root != "torch" or private:
                names |= {alias.asname or alias.name for alias in node.names}
    return names


def public_names() -> set[str]:
    """Returns the qualified public names."""
    found = set()
    loaded = list(modules())
    for module in loaded:
        hidden = foreign(module)
        found |= {
            f"{module.__name__}.{name}"
            for name in vars(module)
            if not name.startswith("_") and name not in hidden
        }
        found.add(module.__name__)
    return found - {"torch.cuda"}


def c_names() -> set[str]:
    """Returns the ``torch._C._cuda_*`` names that torch's sources mention."""
    found: set[str] = set()
    root = Path(torch.__file__).parent
    for path in root.rglob("*.py"):
        text = path.read_text(encoding="utf-8", errors="replace")
        if "_cuda_" in text:
            found.update(MENTION.findall(text))
            if re.search(r"from torch\._C import|from \._C import", text):
                found.update(imported(ast.parse(text)))
    for path in root.glob("_C/*.pyi"):
        found.update(STUB.findall(path.read_text(encoding="utf-8")))
    return {f"torch._C.{name}" for name in found}


def library_names() -> set[str]:
    """Returns the public names of torch.backends.cuda and torch.backends.cudnn.

    The latter stands in for a module, which it keeps as ``m``, and has its switches as properties.
    """
    cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
    names = {f"torch.backends.cuda.{name}" for name in cuda.__all__}
    for owner in (cudnn.m, type(cudnn)):
        hidden = foreign(cudnn.m) | {"torch", "ContextProp", "PropModule"}
        found = (name for name in vars(owner) if not name.startswith("_") and name not in hidden)
        names |= {f"torch.backends.cudnn.{name}" for name in found}
    switches = re.findall(r'name == "(\w+)"', inspect.getsource(cuda.cuBLASModule.__setattr__))
    names |= {f"torch.backends.cuda.matmul.{name}" for name in switches}
    cache = (name for name in vars(cuda.cuFFTPlanCache) if not name.startswith("_"))
    return names | {f"torch.backends.cuda.cufft_plan_cache.{name}" for name in cache}


def imported(tree: ast.AST) -> Iterator[str]:
    """Yields ``_cuda_*`` names that a module imports from torch._C."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("torch._C", "_C"):
            yield from (alias.name for alias in node.names if alias.name.startswith("_cuda_"))


found = {"public": public_names(), "c": c_names(), "libraries": library_names()}
json.dump({kind: sorted(names) for kind, names in found.items()}, sys.stdout)
