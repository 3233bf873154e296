"""Writing a port to disk so that it happens whole or not at all, and can be taken back.

Every port has a folder of its own under ``.cuda-morph-port`` with the old files and a manifest. The
manifest is written before the first file is touched, so that an interrupted port can be undone too.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuda_morph.atomic_file import replace_content
from cuda_morph.errors import MorphError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cuda_morph.port.project import FilePlan

FOLDER = ".cuda-morph-port"
_MANIFEST = "manifest.json"
_CODE = "CM-E15"


def write(plans: Sequence[FilePlan], root: Path) -> Path:
    """Writes the changed files.

    Args:
        plans: What to change.
        root: Folder that gets the backups.

    Returns:
        The folder with the old files and the manifest.

    Raises:
        MorphError: Something cannot be written (``CM-E15``); everything is as it was.
    """
    changed = [plan for plan in plans if plan.changed]
    folder = _new_folder(root)
    written: list[FilePlan] = []
    try:
        _back_up(changed, folder)
        for plan in changed:
            if plan.path.read_bytes() != plan.before:
                raise OSError(f"{plan.path} was changed meanwhile")  # noqa: TRY301
            replace_content(plan.path, plan.after)
            written.append(plan)
    except BaseException as error:
        for plan in written:
            replace_content(plan.path, plan.before)
        shutil.rmtree(folder)
        if not isinstance(error, OSError):
            raise
        raise MorphError(
            f"The port was not written, every file is as it was: {error}.",
            hint="Make the files writable and run the command again.",
            code=_CODE,
        ) from error
    return folder


def _back_up(plans: Sequence[FilePlan], folder: Path) -> None:
    entries = []
    for number, plan in enumerate(plans):
        replace_content(folder / f"{number}.old", plan.before)
        entries.append(
            {
                "path": str(plan.path.resolve()),
                "backup": f"{number}.old",
                "before": _digest(plan.before),
                "after": _digest(plan.after),
            }
        )
    document = {"format": 1, "files": entries}
    replace_content(folder / _MANIFEST, json.dumps(document, indent=1).encode())


def undo(root: Path) -> list[Path]:
    """Takes back the newest port of a folder.

    Args:
        root: Where the port was written.

    Returns:
        The files that were put back.

    Raises:
        MorphError: There is none, its manifest is damaged, or a file was changed since
            (``CM-E15``); nothing is changed then.
    """
    folder = _newest(root)
    entries = _read_manifest(folder)
    restored: list[tuple[Path, bytes]] = []
    changed = []
    for entry in entries:
        path, old = Path(entry["path"]), (folder / entry["backup"]).read_bytes()
        now = path.read_bytes() if path.is_file() else b""
        digest = _digest(now)
        if digest == entry["before"]:
            continue  # the port was interrupted before it came to this file
        if digest != entry["after"] or _digest(old) != entry["before"]:
            changed.append(str(path))
        restored.append((path, old))
    if changed:
        raise MorphError(
            f"Nothing was undone: changed since the port: {', '.join(changed)}.",
            hint=f"The old files are in {folder}.",
            code=_CODE,
        )
    for path, old in restored:
        replace_content(path, old)
    shutil.rmtree(folder)
    if not any(path.is_dir() for path in folder.parent.iterdir()):
        shutil.rmtree(folder.parent)
    return [path for path, _ in restored]


def _new_folder(root: Path) -> Path:
    stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S-%f")
    folder = root / FOLDER / stamp
    try:
        folder.mkdir(parents=True)
        (folder.parent / ".gitignore").write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise MorphError(
            f"No backup can be kept in {root}: {error.strerror or error}.",
            hint="Run the command in a folder that can be written to.",
            code=_CODE,
        ) from error
    return folder


def _newest(root: Path) -> Path:
    folders = sorted(path for path in (root / FOLDER).glob("*") if path.is_dir())
    if not folders:
        raise MorphError(
            f"There is no port to undo in {root.resolve()}.",
            hint="Run it in the folder where cuda-morph port --write was run.",
            code=_CODE,
        )
    return folders[-1]


def _read_manifest(folder: Path) -> list[dict[str, str]]:
    try:
        data: Any = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        return [
            {key: str(entry[key]) for key in ("path", "backup", "before", "after")}
            for entry in data["files"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MorphError(
            f"The manifest of {folder} cannot be read: {error}.",
            hint="The old files are beside it.",
            code=_CODE,
        ) from error


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
