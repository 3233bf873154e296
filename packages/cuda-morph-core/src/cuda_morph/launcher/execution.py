"""Running a prepared program in this process, as the interpreter would run it.

The program gets a real ``__main__`` of its own. Whatever ends it leaves through the interpreter's
own exit path, so exit codes, signals, threads and ``atexit`` behave as under ``python``; only the
frames of the launcher are taken out of the traceback that is shown.
"""

from __future__ import annotations

import builtins
import contextlib
import runpy
import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from types import TracebackType

    from cuda_morph.launcher.program import Prepared

_run_module: Any = runpy._run_module_as_main  # type: ignore[attr-defined]


def enter(prepared: Prepared, path: Sequence[str], modules: Container[str]) -> None:
    """Gives the process the arguments, path and ``__main__`` that python would have given it.

    Args:
        prepared: The program.
        path: ``sys.path`` as Python had made it for the command line.
        modules: Names of the modules that were loaded before the command line.
    """
    sys.argv[:] = prepared.argv
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = [sys.orig_argv[0] or sys.executable, *prepared.program.command]
    safe_path = getattr(sys.flags, "safe_path", bool(sys.flags.isolated))
    # The first entry is the one that Python had added for the command line.
    sys.path[:] = path if safe_path else path[1:]
    if not safe_path or prepared.forced_path_entry:
        sys.path.insert(0, prepared.path_entry)
        _give_way(prepared.path_entry, {name for name in sys.modules if name not in modules})
    _install_main(prepared)


def _give_way(directory: str, names: set[str]) -> None:
    """Forgets modules of ours that the program's own directory has under the same name."""
    for top in {name.partition(".")[0] for name in names} - {"cuda_morph", "__main__"}:
        spec = None
        with contextlib.suppress(Exception):
            spec = PathFinder.find_spec(top, [directory or "."])
        if spec is None or spec.loader is None or top in sys.builtin_module_names:
            continue
        for name in names:
            if name == top or name.startswith(f"{top}."):
                sys.modules.pop(name, None)


def _install_main(prepared: Prepared) -> None:
    main = ModuleType("__main__")
    namespace = vars(main)
    if "__annotations__" in vars(sys.modules["__main__"]):  # some releases of Python make it
        namespace["__annotations__"] = {}
    namespace["__builtins__"] = builtins
    namespace.update(prepared.main_attributes)
    sys.modules["__main__"] = main


def run(prepared: Prepared) -> None:
    """Runs the program; its exception, if any, leaves with a handler that shows it properly.

    Args:
        prepared: The program, after `enter`.
    """
    try:
        if prepared.code is None:
            _run_module(prepared.module, prepared.program.kind == "module")
        else:
            exec(prepared.code, sys.modules["__main__"].__dict__)  # noqa: S102 - the user's program
    except SystemExit:
        raise
    except BaseException:
        _hide_launcher()
        raise


def exit_code(error: BaseException | None) -> int:
    """Returns the exit status that the interpreter gives a program ended by `error`."""
    if error is None:
        return 0
    if isinstance(error, KeyboardInterrupt):
        return 130
    if not isinstance(error, SystemExit):
        return 1
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1


def _hide_launcher() -> None:
    """Makes the interpreter's report of the exception begin at the program's first frame."""
    original = getattr(sys, "excepthook", None)

    def show(
        kind: type[BaseException], value: BaseException, traceback: TracebackType | None
    ) -> None:
        sys.excepthook = original or sys.__excepthook__
        cut = _below_launcher(value.__traceback__ or traceback)
        value.__traceback__ = cut
        sys.last_traceback = cut
        if original is None:
            sys.stderr.write("sys.excepthook is missing\n")
            sys.__excepthook__(kind, value, cut)
            return
        try:
            original(kind, value, cut)
        except SystemExit:
            raise
        except BaseException as failure:  # noqa: BLE001 - reported as the interpreter would
            inner = failure.__traceback__
            failure.__traceback__ = inner.tb_next if inner else None
            sys.stderr.write("Error in sys.excepthook:\n")
            sys.__excepthook__(type(failure), failure, failure.__traceback__)
            sys.stderr.write("\nOriginal exception was:\n")
            sys.__excepthook__(kind, value, cut)

    sys.excepthook = show


def _below_launcher(traceback: TracebackType | None) -> TracebackType | None:
    """Returns the part of a traceback that begins where `run` entered the program."""
    entry = traceback
    while entry is not None and entry.tb_frame.f_code is not run.__code__:
        entry = entry.tb_next
    return entry.tb_next if entry else traceback
