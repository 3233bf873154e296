"""Writing files whole or not at all: reports, lists and other people's sources alike.

A file that is there keeps its old content until the new one is complete, through errors, a full
disk and Ctrl-C. It keeps its mode, a link keeps pointing to it, and a pipe or device such as
``/dev/stdout`` is written to, never replaced by a file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path

from cuda_morph.errors import MorphError

_FILE_MODE = 0o666
"""Less what the user's mask takes away, as for any new file."""
_NAME_PART = 40
"""Characters of a file's name in that of its temporary file: names have a limit too."""
_STREAMS = frozenset({"/dev", "/dev/fd", "/proc/self/fd"})
"""Folders of open streams; one that leads to a file is to be written to like any other."""


class AtomicFile:
    """A text file that a command will write. It is checked before the work whose outcome it gets.

    Args:
        path: Where the text goes; the folder must exist.
        what: What the text is, for messages.
        hint: What to do when it cannot be written.

    Raises:
        MorphError: It could not be written there (``CM-E15``).
    """

    def __init__(
        self,
        path: Path,
        what: str = "report",
        hint: str = "Name a file in a folder that exists and that you may write to.",
    ) -> None:
        self._what, self._hint = what, hint
        self.path = Path(os.path.abspath(path))  # noqa: PTH100 - the folder may be changed later
        try:
            require_writable(self.path)
        except (OSError, ValueError) as error:
            raise self.unwritable(error) from error

    def write(self, text: str, *, errors: str = "backslashreplace") -> None:
        """Writes the text, in UTF-8.

        Args:
            text: The whole content.
            errors: What to do with characters that have no bytes, as for `str.encode`.

        Raises:
            MorphError: It cannot be written (``CM-E15``); the file is as it was.
        """
        try:
            replace_content(self.path, text.encode("utf-8", errors))
        except (OSError, ValueError) as error:
            raise self.unwritable(error) from error

    def unwritable(self, error: Exception) -> MorphError:
        """Returns the error to raise for what the system said."""
        said = getattr(error, "strerror", None) or error
        text = f"The {self._what} cannot be written to {str(self.path)!r}: {said}."
        return MorphError(text, hint=self._hint, code="CM-E15")


def require_writable(path: Path) -> None:
    """Makes sure that a file could be written, and leaves everything as it was.

    Args:
        path: The file; it may be there or not.

    Raises:
        OSError: It could not.
        ValueError: It is no path.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    if not _is_special(path):
        temporary, descriptor = _new_file(_target(path))
        os.close(descriptor)
        temporary.unlink()


def replace_content(path: Path, content: bytes, *, mode: int = _FILE_MODE) -> None:
    """Gives a file its content, all of it or none; on any error it is as it was.

    Args:
        path: The file; it may be there or not.
        content: What it will hold.
        mode: Of a new file, less what the user's mask takes away.

    Raises:
        OSError: It cannot be written.
        ValueError: It is no path.
    """
    if _is_special(path):
        with path.open("ab") as stream:  # at the end: what a stream holds already stays
            stream.write(content)
        return
    path = _target(path)
    temporary, descriptor = _new_file(path, mode)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        with contextlib.suppress(FileNotFoundError):
            temporary.chmod(path.stat().st_mode & 0o7777)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _is_special(path: Path) -> bool:
    """Tells pipes and devices: replacing one would take it away from everybody."""
    if str(path.parent) in _STREAMS:
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def _target(path: Path) -> Path:
    """Follows links, also to a file that is not there yet; a loop of links is an error."""
    with contextlib.suppress(FileNotFoundError):
        path.stat()
    return Path(os.path.realpath(path))


def _new_file(path: Path, mode: int = _FILE_MODE) -> tuple[Path, int]:
    """Makes an empty file beside another one."""
    name = f".{path.name[:_NAME_PART]}.{secrets.token_hex(6)}.tmp"
    temporary = path.with_name(name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    return temporary, os.open(temporary, flags, mode)
