import subprocess
import sys
import textwrap

import pytest

from cuda_morph.errors import MorphError
from cuda_morph_sim import build

ENSURE = """
from cuda_morph.errors import MorphError
from cuda_morph_sim import build
try:
    print(build.ensure_built())
except MorphError as error:
    print(error)
    raise SystemExit(3)
"""


def test_every_source_file_is_in_exactly_one_unit():
    listed = [name for unit in build.UNITS.values() for name in unit]
    assert sorted(listed) == sorted(path.stem for path in build.SOURCES.glob("*.cpp"))


def test_the_digest_follows_sources_and_flags(monkeypatch, tmp_path):
    before = build.source_digest()
    assert before == build.source_digest()
    monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-O0"))
    assert build.source_digest() != before
    (tmp_path / "one.cpp").write_text("int x;")
    monkeypatch.setattr(build, "SOURCES", tmp_path)
    first = build.source_digest()
    (tmp_path / "one.cpp").write_text("int y;")
    assert build.source_digest() != first


def test_each_torch_version_has_its_own_build():
    assert build.library_path("2.13.0+cpu") != build.library_path("2.14.0+cpu")


def test_no_compiler_says_so_and_names_the_cpu_fallback(python, tmp_path):
    done = python(ENSURE, expect=3, CUDA_MORPH_SIM_CACHE=str(tmp_path), CXX="/nowhere/g++")
    assert "[CM-E12]" in done.stdout
    assert "/nowhere/g++" in done.stdout
    assert "--backend cpu" in done.stdout
    assert "activate('cpu')" in done.stdout
    assert "Traceback" not in done.stderr


def test_failed_compile_gives_the_path_of_its_log(python, tmp_path):
    compiler = tmp_path / "broken"
    compiler.write_text("#!/bin/sh\necho 'the compiler is unwell' >&2\nexit 1\n")
    compiler.chmod(0o755)
    cache = tmp_path / "cache"
    done = python(ENSURE, expect=3, CUDA_MORPH_SIM_CACHE=str(cache), CXX=str(compiler))
    log = cache / "build-failure.log"
    assert "[CM-E12]" in done.stdout
    assert str(log) in done.stdout
    assert "the compiler is unwell" in log.read_text()
    assert not list(cache.glob("build-*/")), "the half-made build was left behind"


def test_a_cache_that_cannot_be_written_is_explained(python, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    done = python(ENSURE, expect=3, CUDA_MORPH_SIM_CACHE=str(file / "cache"))
    assert "[CM-E12]" in done.stdout
    assert "CUDA_MORPH_SIM_CACHE" in done.stdout


@pytest.fixture
def slow_compiler(tmp_path):
    """A compiler that notes each call and makes an empty result: the real one takes too long."""
    compiler = tmp_path / "slow"
    compiler.write_text(
        textwrap.dedent(f"""\
            #!{sys.executable}
            import sys, time
            time.sleep(0.5)
            with open({str(tmp_path / "calls")!r}, "a") as calls:
                calls.write(" ".join(sys.argv) + "\\n")
            open(sys.argv[sys.argv.index("-o") + 1], "w").close()
            """)
    )
    compiler.chmod(0o755)
    return compiler


def test_two_processes_at_once_build_once(python, tmp_path, slow_compiler, monkeypatch):
    cache = tmp_path / "cache"
    monkeypatch.setenv("CUDA_MORPH_SIM_CACHE", str(cache))
    monkeypatch.setenv("CXX", str(slow_compiler))
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: python(ENSURE), range(2)))
    assert both[0].stdout == both[1].stdout
    progress = [done.stderr for done in both if "building the simulated device" in done.stderr]
    assert len(progress) == 1
    assert progress[0].count("\n") == 1
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == len(build.UNITS) + 1, "each unit once, and one link"


def test_an_existing_build_needs_no_compiler(python, tmp_path, slow_compiler):
    cache = str(tmp_path / "cache")
    first = python(ENSURE, CUDA_MORPH_SIM_CACHE=cache, CXX=str(slow_compiler))
    again = python(ENSURE, CUDA_MORPH_SIM_CACHE=cache, CXX="/nowhere/g++")
    assert again.stdout == first.stdout
    assert not again.stderr


def test_the_lock_is_held_by_name_of_the_build(tmp_path):
    folder = tmp_path / "torch-1"
    with build._locked(folder):
        program = (
            "import filelock, sys\n"
            f"lock = filelock.FileLock({str(folder) + '.lock'!r}, timeout=0)\n"
            "try:\n    lock.acquire()\n"
            "except filelock.Timeout:\n    sys.exit(5)\n"
        )
        assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 5


def test_no_torch_is_an_error_of_its_own(monkeypatch):
    monkeypatch.setattr(build.toolchain, "find_torch", lambda: None)
    with pytest.raises(MorphError) as error:
        build.ensure_built()
    assert error.value.code == "CM-E08"
