"""What the installed PyTorch was built for, read without importing it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from cuda_morph.frozen_record import frozen_record


@frozen_record
class TorchBuild:
    """The contents of ``torch/version.py``."""

    version: str
    """With the local part, e.g. ``2.13.0+cpu``."""
    cuda: str | None = None
    hip: str | None = None
    xpu: str | None = None


def torch_build() -> TorchBuild | None:
    """Reads what PyTorch says of its build.

    Returns:
        The facts; ``None`` without PyTorch, or when its version file cannot be understood.
    """
    try:
        folder = _folder()
        text = (folder / "version.py").read_text(encoding="utf-8") if folder else ""
        values = _assigned_texts(text)
    except (ImportError, OSError, ValueError, SyntaxError):
        return None
    version = values.get("__version__")
    if not version:
        return None
    return TorchBuild(version=version, **{key: values.get(key) for key in ("cuda", "hip", "xpu")})


def _folder() -> Path | None:
    loaded = sys.modules.get("torch")
    if loaded is not None and getattr(loaded, "__file__", None):
        return Path(str(loaded.__file__)).parent
    spec = find_spec("torch")
    return Path(spec.origin).parent if spec and spec.origin else None


def _assigned_texts(source: str) -> dict[str, str]:
    """Returns the names of a module that are assigned a text."""
    import ast

    found = {}
    for node in ast.parse(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        value = getattr(node, "value", None)
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            found.update({one.id: value.value for one in targets if isinstance(one, ast.Name)})
    return found
