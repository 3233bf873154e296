"""A program under ``cuda-morph run`` behaves, byte for byte, as it does under ``python``."""

import os
import py_compile
import re
import signal
import subprocess
import sys
import textwrap
import time
import zipfile

import pytest

RUN = [sys.executable, "-m", "cuda_morph", "run"]
ADDRESS = re.compile(rb"0x[0-9a-f]+")


def execute(command, cwd, *, stdin=b"", env=None):
    done = subprocess.run(
        command,
        check=False,
        cwd=cwd,
        input=stdin,
        capture_output=True,
        env={**os.environ, **(env or {})},
        timeout=60,
    )
    return done.returncode, ADDRESS.sub(b"0x", done.stdout), ADDRESS.sub(b"0x", done.stderr)


def assert_same(cwd, *arguments, stdin=b"", env=None):
    """Runs both and compares; returns what python gave, so that a test can check it ran at all."""
    expected = execute([sys.executable, *arguments], cwd, stdin=stdin, env=env)
    found = execute([*RUN, *arguments], cwd, stdin=stdin, env=env)
    assert found == expected
    return expected


def write(path, source):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    return path


STATE = """
    '''The docstring.'''
    import inspect, sys, __main__
    def function():
        return 1
    print(list(globals().items()))
    print(sys.argv, sys.path, sys.orig_argv, sys.executable, sys.flags)
    print(sys.modules["__main__"] is __main__, __main__.function is function, __name__)
    print(inspect.getsource(function) if "__file__" in globals() and __file__ != "<stdin>" else "")
    print(function.__module__, inspect.getmodule(function), __doc__)
    print(ascii(sys.stdin.read()))
"""

ARGUMENTS = [
    "--batch-size",
    "32",
    "--help",
    "--device",
    "cuda",
    "--",
    "-m",
    "-c",
    "ü ñ",
    "",
    "--backend=x",
]


@pytest.mark.parametrize(
    ("script", "where"),
    [
        ("prog.py", "."),
        ("./prog.py", "."),
        ("../prog.py", "sub"),
        ("sub/../prog.py", "."),
        ("with space/ü.py", "."),
        ("link.py", "."),
    ],
)
def test_script_sees_what_python_gives(tmp_path, script, where):
    write(tmp_path / "prog.py", STATE)
    write(tmp_path / "with space/ü.py", STATE)
    (tmp_path / "sub").mkdir()
    (tmp_path / "link.py").symlink_to(tmp_path / "with space/ü.py")
    code, out, _ = assert_same(tmp_path / where, script, *ARGUMENTS, stdin=b"typed\n")
    assert code == 0
    assert b"typed" in out


def test_absolute_path_and_script_without_suffix(tmp_path):
    program = write(tmp_path / "program", STATE)
    assert assert_same("/", str(program), "a")[0] == 0


def test_code_and_standard_input(tmp_path):
    source = textwrap.dedent(STATE).encode()
    assert assert_same(tmp_path, "-c", source.decode(), *ARGUMENTS)[0] == 0
    assert assert_same(tmp_path, "-cimport sys; print(sys.argv)", "x")[0] == 0
    assert assert_same(tmp_path, "-", *ARGUMENTS, stdin=source)[0] == 0


def test_safe_path(tmp_path):
    write(tmp_path / "prog.py", STATE)
    write(tmp_path / "directory/__main__.py", STATE)
    for arguments in (["prog.py"], ["directory"], ["-c", "import sys; print(sys.path)"]):
        assert assert_same(tmp_path, *arguments, env={"PYTHONSAFEPATH": "1"})[0] == 0


def test_modules_packages_directories_and_archives(tmp_path):
    write(tmp_path / "module.py", STATE)
    write(tmp_path / "package/__init__.py", "print('init', __name__)")
    write(tmp_path / "package/sibling.py", "VALUE = 7")
    write(tmp_path / "package/__main__.py", "from . import sibling\nprint(sibling.VALUE)\n")
    write(tmp_path / "package/part.py", STATE + "\n    from .sibling import VALUE")
    write(tmp_path / "directory/__main__.py", STATE + "\n    import near")
    write(tmp_path / "directory/near.py", "print('near', __file__)")
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as archive:
        archive.write(tmp_path / "directory/__main__.py", "__main__.py")
        archive.write(tmp_path / "directory/near.py", "near.py")
    for arguments in (
        ["-m", "module", *ARGUMENTS],
        ["-mpackage", "x"],
        ["-m", "package", "a"],
        ["-m", "package.part"],
        ["directory", "a"],
        ["app.pyz", "a"],
    ):
        assert assert_same(tmp_path, *arguments)[0] == 0, arguments


def test_missing_modules(tmp_path):
    write(tmp_path / "package/__init__.py", "")
    write(tmp_path / "bad.py", "import package.nothing")
    for module in ("nothing", "nothing.part", "package", "package.nothing", "bad"):
        code, _, err = assert_same(tmp_path, "-m", module)
        assert (code, b"No module named" in err) == (1, True)


def test_compiled_file(tmp_path):
    write(
        tmp_path / "prog.py", "import sys; print(__file__, __cached__, __loader__, sys.argv); 1 / 0"
    )
    py_compile.compile(str(tmp_path / "prog.py"), cfile=str(tmp_path / "prog.pyc"))
    assert assert_same(tmp_path, "prog.pyc", "x")[0] == 1


@pytest.mark.parametrize("name", ["click", "json", "pathlib", "rich", "cuda_morph_helper"])
def test_sibling_module_wins_over_one_that_the_command_line_uses(tmp_path, name):
    write(tmp_path / f"{name}.py", "print('mine', __file__)")
    write(tmp_path / "prog.py", f"import {name}; print({name}.__file__)")
    _, out, _ = assert_same(tmp_path, "prog.py")
    assert out.startswith(b"mine")


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("sys.exit()", 0),
        ("sys.exit(0)", 0),
        ("sys.exit(3)", 3),
        ("sys.exit(-1)", 255),
        ("sys.exit(259)", 3),
        ("sys.exit(True)", 1),
        ("sys.exit('fatal')", 1),
        ("sys.exit(['an', 'object'])", 1),
        ("raise SystemExit(3, 4)", 1),
        ("os._exit(7)", 7),
        ("1 / 0", 1),
        ("raise KeyboardInterrupt('why')", -signal.SIGINT),
        ("os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(5)", -signal.SIGINT),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
        ("os.abort()", -signal.SIGABRT),
        ("raise GeneratorExit", 1),
        ("threading.Thread(target=sys.exit, args=(5,)).start()", 0),
        ("signal.signal(signal.SIGTERM, lambda *_: sys.exit(9)); signal.raise_signal(15)", 9),
        ("sys.stdout.close()", 0),
        ("os.close(2); 1 / 0", 1),
        ("sys.stderr = None; 1 / 0", 1),
        ("atexit.register(lambda: os._exit(4))", 4),
        ("os.execv(sys.executable, [sys.executable, '-c', 'print(1); raise SystemExit(6)'])", 6),
    ],
)
def test_exit(tmp_path, statement, code):
    write(
        tmp_path / "prog.py",
        f"import atexit, os, signal, sys, threading\nprint(1, flush=True)\n{statement}\n",
    )
    assert assert_same(tmp_path, "prog.py")[0] == code


@pytest.mark.parametrize("kind", [["prog.py"], ["-m", "prog"]])
def test_interrupt_from_the_terminal(tmp_path, kind):
    write(tmp_path / "prog.py", "import time\nprint('up', flush=True)\ntime.sleep(30)\n")
    results = []
    for command in ([sys.executable], RUN):
        process = subprocess.Popen(
            [*command, *kind], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        process.stdout.readline()
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        results.append((process.returncode, err))
    assert results[0] == results[1]
    assert results[0][0] == -signal.SIGINT


TRACEBACKS = {
    "nested": """
        def outer():
            return inner()
        def inner():
            return {}["missing"] + len([1, 2])
        outer()
    """,
    "chained": """
        try:
            try:
                1 / 0
            except ZeroDivisionError as error:
                raise ValueError("second") from error
        except ValueError:
            raise KeyError("third")
    """,
    "suppressed": """
        try:
            1 / 0
        except ZeroDivisionError:
            raise ValueError("only this") from None
    """,
    "notes": """
        error = ValueError("multi\\nline ü")
        if hasattr(error, "add_note"):
            error.add_note("a note")
        raise error
    """,
    "sibling_syntax_error": "import broken_sibling",
    "sibling_error": "import failing_sibling",
    "runtime_syntax_error": "compile('def (', 'generated', 'exec')",
    "exec": "exec('def f():\\n  raise RuntimeError(1)\\nf()')",
    "comprehension": "print([1 // x for x in (1, 0)])",
    "excepthook": """
        import sys, traceback
        def hook(kind, value, tb):
            print("hook", kind, value, len(traceback.extract_tb(tb)), value.__traceback__ is tb)
            traceback.print_exception(kind, value, tb)
        sys.excepthook = hook
        raise ValueError("x")
    """,
    "excepthook_raises": """
        import sys
        def hook(kind, value, tb):
            raise RuntimeError("in the hook")
        sys.excepthook = hook
        raise ValueError("x")
    """,
    "excepthook_exits": """
        import sys
        sys.excepthook = lambda *_: sys.exit(42)
        raise ValueError("x")
    """,
    "excepthook_missing": """
        import sys
        del sys.excepthook
        raise ValueError("x")
    """,
    "last_traceback": """
        import atexit, sys, traceback
        def show():
            traceback.print_tb(sys.last_traceback)
            print(sys.last_type, sys.last_value, sys.excepthook is sys.__excepthook__)
        atexit.register(show)
        raise ValueError("x")
    """,
    "thread": """
        import threading
        def work():
            raise ValueError("in a thread")
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()
    """,
    "unraisable": """
        class Bad:
            def __del__(self):
                raise ValueError("in __del__")
        Bad()
    """,
    "atexit": """
        import atexit
        atexit.register(lambda: 1 / 0)
        atexit.register(print, "at exit")
    """,
    "own_exception": """
        class Own(Exception):
            pass
        raise Own("defined in main")
    """,
    "unprintable": """
        class Own(Exception):
            def __str__(self):
                raise ValueError
        raise Own
    """,
    "asyncio": """
        import asyncio
        async def main():
            await asyncio.sleep(0)
            raise ValueError("async")
        asyncio.run(main())
    """,
    "logging": """
        import logging
        try:
            1 / 0
        except ZeroDivisionError:
            logging.exception("caught")
        import warnings
        warnings.warn("here")
        warnings.warn("deprecated", DeprecationWarning)
        "\\d"
    """,
}
if sys.version_info >= (3, 11):
    TRACEBACKS["group"] = """
        def make(text):
            try:
                raise ValueError(text)
            except ValueError as error:
                return error
        raise ExceptionGroup("several", [make("a"), ExceptionGroup("inner", [make("b")])])
    """


ALSO_AS_MODULE = ("nested", "chained", "excepthook", "sibling_syntax_error")


@pytest.mark.parametrize("name", TRACEBACKS)
def test_standard_error(tmp_path, name):
    write(tmp_path / "broken_sibling.py", "x = 1\ndef (:\n")
    write(tmp_path / "failing_sibling.py", "def f():\n    raise OSError(2, 'gone')\nf()\n")
    program = write(tmp_path / "prog.py", TRACEBACKS[name])
    _, out, err = assert_same(tmp_path, "prog.py")
    assert out or err or name == "excepthook_exits"
    if name in ALSO_AS_MODULE:
        assert_same(tmp_path, "-m", "prog")
        assert_same(tmp_path, "-c", program.read_text(encoding="utf-8"))


def test_error_in_a_directory_and_in_an_archive(tmp_path):
    main = write(tmp_path / "directory/__main__.py", "def f():\n    1 / 0\nf()\n")
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as archive:
        archive.write(main, "__main__.py")
    assert assert_same(tmp_path, "directory")[0] == 1
    assert assert_same(tmp_path, "app.pyz")[0] == 1


PROCESSES = """
    import concurrent.futures, multiprocessing, os, pickle, subprocess, sys, threading, time

    class Point:
        def __init__(self, x):
            self.x = x

    def work(point):
        return type(point).__module__, __name__, point.x * 2, sys.argv

    if __name__ == "__main__":
        assert pickle.loads(pickle.dumps(Point(3))).x == 3
        for method in multiprocessing.get_all_start_methods():
            context = multiprocessing.get_context(method)
            with context.Pool(1) as pool:
                print(method, pool.map(work, [Point(1), Point(2)]))
            process = context.Process(target=sys.exit, args=(3,))
            process.start()
            process.join()
            print(process.exitcode)
        with concurrent.futures.ProcessPoolExecutor(
            1, mp_context=multiprocessing.get_context("spawn")
        ) as pool:
            print(pool.submit(work, Point(5)).result())
        print(subprocess.run([sys.executable, "-c", "print('child')"], capture_output=True).stdout)
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            print("forked")
            sys.exit(5)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        threading.Thread(target=lambda: (time.sleep(0.2), print("thread outlives main"))).start()
"""


@pytest.mark.parametrize("kind", [["prog.py"], ["-m", "prog"]])
def test_child_processes_and_threads(tmp_path, kind):
    write(tmp_path / "prog.py", PROCESSES)
    code, out, _ = assert_same(tmp_path, *kind, "argument")
    assert code == 0
    assert out.endswith(b"thread outlives main\n")


def test_debugger(tmp_path):
    write(tmp_path / "prog.py", "x = 41\nbreakpoint()\nx += 1\nprint(x)\n")
    code, out, _ = assert_same(tmp_path, "prog.py", stdin=b"p x + 100\nn\nc\n")
    assert code == 0
    assert b"141" in out
    write(tmp_path / "plain.py", "x = 41\nprint(x)\n")
    assert b"41" in assert_same(tmp_path, "-m", "pdb", "plain.py", stdin=b"n\nn\np x\nc\nq\n")[1]


def test_standard_library_runners(tmp_path):
    write(
        tmp_path / "test_sample.py",
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.fail('no')\n",
    )
    code, _, err = execute([*RUN, "-m", "unittest", "test_sample"], tmp_path)
    assert (code, b"FAILED (failures=1)" in err) == (1, True)
    assert assert_same(tmp_path, "-m", "timeit", "-n", "1", "-r", "1", "-h")[0] == 0
