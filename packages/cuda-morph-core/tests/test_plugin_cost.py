import subprocess
import sys
import textwrap


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_loading_all_plugins_imports_no_torch() -> None:
    code = "import sys; from cuda_morph.plugins import discover; discover(); print('torch' in sys.modules)"
    assert run(code) == "False"


# Processor time, not wall time: on a busy machine the latter counts the waiting for a core.


def test_importing_the_package_is_fast_and_light() -> None:
    code = """
        import sys, time
        start = time.process_time()
        import cuda_morph
        print(time.process_time() - start, *({"torch", "pluggy", "importlib.metadata"} & set(sys.modules)))
    """
    best = min(float(run(code)) for _ in range(3))
    assert best < 0.03


def test_listing_names_is_fast() -> None:
    code = """
        import time
        from cuda_morph.plugins import plugin_names
        start = time.process_time()
        plugin_names()
        print(time.process_time() - start)
    """
    assert min(float(run(code)) for _ in range(3)) < 0.02
