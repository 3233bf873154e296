"""What is to be run, read and compiled before anything is changed."""

from __future__ import annotations

import contextlib
import importlib.util
import marshal
import os
import sys
from dataclasses import dataclass, field
from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader
from typing import TYPE_CHECKING, Any, Literal

from cuda_morph.errors import LaunchError

if TYPE_CHECKING:
    from types import CodeType

_PYC_HEADER = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program as the user named it."""

    kind: Literal["script", "module", "code", "stdin"]
    target: str
    """Path, module name or source text, by kind."""
    arguments: tuple[str, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        """What would follow ``python`` on a command line."""
        flags = {"script": (), "module": ("-m",), "code": ("-c",), "stdin": ()}
        return (*flags[self.kind], self.target, *self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A program that is ready to be run."""

    program: Program
    argv: tuple[str, ...]
    path_entry: str
    """What Python puts first on ``sys.path``."""
    forced_path_entry: bool = False
    """True where Python adds the entry in safe-path mode, too."""
    code: CodeType | None = None
    """Compiled source; ``None``: `runpy` finds and runs `module`, as it does for python."""
    module: str = ""
    main_attributes: dict[str, Any] = field(default_factory=dict)


def prepare(program: Program) -> Prepared:
    """Reads and compiles the program.

    Args:
        program: What the user named.

    Returns:
        The program, ready to run.

    Raises:
        LaunchError: It cannot be read or is not Python; a syntax error is shown first.
    """
    if program.kind == "module":
        return Prepared(
            program=program,
            argv=("-m", *program.arguments),
            path_entry=_working_directory(),
            module=program.target,
        )
    if program.kind == "code":
        return _text(program, "-c", program.target.encode(), "<string>")
    if program.kind == "stdin":
        if sys.stdin is None:
            raise LaunchError("cannot run '-': standard input is closed.")
        prepared = _text(program, "-", sys.stdin.buffer.read(), "<stdin>")
        prepared.main_attributes.update(__file__="<stdin>", __cached__=None)
        return prepared
    return _script(program)


def _working_directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - `sys.path` holds strings
    except OSError:
        return ""


def _text(program: Program, name: str, source: bytes, filename: str) -> Prepared:
    return Prepared(
        program=program,
        argv=(name, *program.arguments),
        path_entry="",
        code=_compile(source, filename, name),
        main_attributes={"__loader__": BuiltinImporter},
    )


def _script(program: Program) -> Prepared:
    given = program.target
    # Python joins and does not normalise; tracebacks and `__file__` show it.
    path = given if os.path.isabs(given) else os.path.join(_working_directory(), given)  # noqa: PTH117, PTH118
    importer = _importer(path)
    if importer is not None:
        return _container(program, path, importer)
    source = _read(path)
    loader: Any
    if _is_compiled(path, source):
        code, loader = _load_compiled(path, source), SourcelessFileLoader("__main__", path)
    else:
        code, loader = _compile(source, path, given), SourceFileLoader("__main__", path)
    return Prepared(
        program=program,
        argv=(given, *program.arguments),
        path_entry=os.path.dirname(os.path.realpath(path)),  # noqa: PTH120
        code=code,
        main_attributes={"__loader__": loader, "__file__": path, "__cached__": None},
    )


def _importer(path: str) -> Any:
    """Returns what imports from `path` when it is a directory or a zip file, else ``None``."""
    for hook in sys.path_hooks:
        with contextlib.suppress(ImportError):
            return hook(path)
    return None


def _container(program: Program, path: str, importer: Any) -> Prepared:
    if importer.find_spec("__main__") is None:
        raise LaunchError(
            f"cannot run {program.target!r}: it holds no __main__.py.",
            hint="Name the script itself; a package is run with -m.",
        )
    return Prepared(
        program=program,
        argv=(program.target, *program.arguments),
        path_entry=path,
        forced_path_entry=True,
        module="__main__",
    )


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pipes and descriptors are welcome
            return file.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LaunchError(
            f"cannot open {path!r}: {reason}.",
            hint="Check the path; a module is run with -m.",
        ) from error


def _compile(source: bytes, filename: str, shown: str) -> CodeType:
    if b"\0" in source:
        raise _not_python(shown, "it is a binary file (it holds NUL bytes)")
    try:
        return compile(source, filename, "exec", dont_inherit=True)
    except SyntaxError as error:
        if not _is_text(source):
            raise _not_python(shown, "it is not text in the encoding it declares") from error
        sys.__excepthook__(type(error), error.with_traceback(None), None)
        line = f" (line {error.lineno})" if error.lineno else ""
        raise LaunchError(f"cannot run {shown!r}: syntax error{line}.") from error
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise _not_python(shown, str(error)) from error


def _is_text(source: bytes) -> bool:
    try:
        importlib.util.decode_source(source)
    except (SyntaxError, UnicodeError):
        return False
    return True


def _is_compiled(path: str, source: bytes) -> bool:
    return path.endswith(".pyc") or source.startswith(importlib.util.MAGIC_NUMBER)


def _load_compiled(path: str, source: bytes) -> CodeType:
    if not source.startswith(importlib.util.MAGIC_NUMBER):
        raise _not_python(path, "it was compiled by another version of Python")
    try:
        code = marshal.loads(source[_PYC_HEADER:])  # noqa: S302 - as python itself runs the file
    except (EOFError, ValueError, TypeError) as error:
        raise _not_python(path, f"its bytecode is damaged ({error})") from error
    compiled: CodeType = code
    return compiled


def _not_python(shown: str, reason: str) -> LaunchError:
    return LaunchError(
        f"cannot run {shown!r}: {reason}.", hint="Name a Python source file, or use -m or -c."
    )
