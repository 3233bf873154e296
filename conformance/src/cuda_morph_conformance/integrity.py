"""Which suite made a result: hashes of the checklist and of the suite's files."""

from __future__ import annotations

import base64
import functools
import hashlib
import inspect
import sys
from importlib.metadata import distribution
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.vocabulary import CHECKLIST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cuda_morph_conformance.registry import Check

DISTRIBUTION = "cuda-morph-conformance"
PACKAGE = "cuda_morph_conformance"

_FOLDER = Path(__file__).parent


@functools.cache
def check_digest(check: Check) -> str:
    """Hash what a check demands and how it proves it.

    Args:
        check: A check of the checklist.

    Returns:
        A SHA-256 over its id, sentence, terms and source.
    """
    terms = (
        check.id,
        check.must,
        check.level.value,
        " ".join(check.requires),
        str(check.devices),
        str(check.fresh),
        " ".join(check.views),
        inspect.getsource(check.run),
    )
    return hashlib.sha256("\0".join(terms).encode()).hexdigest()


def checklist_digest(digests: Mapping[str, str], version: str = CHECKLIST) -> str:
    """Hash a whole checklist.

    Args:
        digests: The digest of each check by its id.
        version: The version of the checklist.

    Returns:
        A SHA-256 over all of them.
    """
    lines = [version, *(f"{name} {digests[name]}" for name in sorted(digests))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def describe_suite() -> dict[str, Any]:
    """Say which suite this is, down to its files.

    Returns:
        Name and version of the distribution, the digest of its RECORD, that of its files, whether
        it is installed as editable, and the files that differ from what was installed.
    """
    own = distribution(DISTRIBUTION)
    record = own.read_text("RECORD") or ""
    listed = [file for file in own.files or () if _is_own(file.parts)]
    return {
        "dist": DISTRIBUTION,
        "version": own.version,
        "record_sha256": hashlib.sha256(record.encode()).hexdigest() if record else None,
        "files_sha256": _files_digest(),
        "editable": not listed,
        "modified": sorted(_modified(listed)),
    }


def loaded_code() -> dict[str, int]:
    """Take the fingerprint of the suite as loaded: where each of its functions points.

    Returns:
        The identity of the code of each function, by its name.
    """
    found: dict[str, int] = {}
    modules = [item for item in sys.modules.items() if item[0].partition(".")[0] == PACKAGE]
    for name, module in modules:
        for key, value in list(vars(module).items()):
            if isinstance(value, FunctionType):
                found[f"{name}.{key}"] = id(value.__code__)
            elif isinstance(value, type) and value.__module__ == name:
                methods = ((k, v) for k, v in vars(value).items() if isinstance(v, FunctionType))
                found.update((f"{name}.{key}.{k}", id(v.__code__)) for k, v in methods)
    return found


def _files_digest() -> str:
    total = hashlib.sha256()
    for path in sorted(_FOLDER.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            total.update(f"{path.relative_to(_FOLDER).as_posix()}\0".encode())
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def _is_own(parts: tuple[str, ...]) -> bool:
    return parts[0] == PACKAGE and "__pycache__" not in parts


def _modified(listed: Iterable[Any]) -> list[str]:
    """Names the files whose content is not what the wheel had, and those it did not have."""
    changed = []
    known = set()
    for file in listed:
        path = Path(str(file.locate()))
        known.add(path.resolve())
        expected = file.hash
        if not path.is_file():
            changed.append(f"{file} (absent)")
        elif expected is not None and _record_hash(path, expected.mode) != expected.value:
            changed.append(str(file))
    if known:
        present = {path.resolve() for path in _FOLDER.rglob("*.py")}
        changed += [f"{path.name} (added)" for path in present - known]
    return changed


def _record_hash(path: Path, mode: str) -> str:
    digest = hashlib.new(mode, path.read_bytes()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
