"""Results of earlier scans, by path, size and time of change.

The file is JSON and may be deleted at any time; one that is damaged counts as empty.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from cuda_morph.atomic_file import replace_content
from cuda_morph.scan.file_scan import FileResult
from cuda_morph.scan.finding import Finding, Place


class Cache:
    """A cache of one scanned project.

    Args:
        file: Where it is kept; read at once if it is there.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._old: dict[str, Any] = _read(file)
        self._new: dict[str, Any] = {}
        self._changed = False

    def get(self, path: Path, max_size: int) -> FileResult | None:
        """Returns the result of a file that has not changed since, else ``None``."""
        key = os.path.abspath(path)  # noqa: PTH100 - ten times faster, and called for every file
        entry = self._old.get(key)
        if entry is None or entry["stamp"] != _stamp(path, max_size):
            return None
        self._new[key] = entry
        return _result(str(path), entry)

    def put(self, path: Path, result: FileResult, max_size: int) -> None:
        """Keeps a result. One of a file that could not be read is not kept."""
        stamp = _stamp(path, max_size)
        if stamp is None or any(found.rule == "CM902" for found in result.findings):
            return
        entry = asdict(result)
        del entry["path"]
        entry["stamp"] = stamp
        self._new[os.path.abspath(path)] = entry  # noqa: PTH100
        self._changed = True

    def save(self) -> None:
        """Writes the cache if anything changed; it appears whole or not at all."""
        if not self._changed and len(self._new) == len(self._old):
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        content = json.dumps({"rules": _fingerprint(), "files": self._new})
        replace_content(self._file, content.encode(), mode=0o600)


def default_file(paths: list[Path]) -> Path:
    """Returns where the cache of these paths is kept, in the user's cache folder."""
    import platformdirs

    key = "\n".join(sorted(str(path.resolve()) for path in paths))
    name = hashlib.sha256(os.fsencode(key)).hexdigest()[:16]
    folder = Path(platformdirs.user_cache_dir("cuda-morph", appauthor=False)) / "check"
    return folder / f"{name}.json"


@lru_cache(maxsize=1)
def _fingerprint() -> str:
    """Changes with every change of the scanner, so that old results are not taken for its own."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    names = (here.parent / "api_table").glob("*.json")
    for file in sorted([*here.glob("*.py"), *here.glob("*.json"), *names]):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _read(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["rules"] == _fingerprint():
            files: dict[str, Any] = data["files"]
            return files
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return {}


def _stamp(path: Path, max_size: int) -> list[int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return [status.st_mtime_ns, status.st_size, max_size]


def _result(path: str, entry: dict[str, Any]) -> FileResult:
    findings = tuple(
        Finding(**{**found, "place": Place(**found["place"])}) for found in entry["findings"]
    )
    return FileResult(
        path=path,
        kind=entry["kind"],
        lines=entry["lines"],
        findings=findings,
        suppressed=entry["suppressed"],
        skipped=entry["skipped"],
    )
