import sys

from cuda_morph_sim import toolchain


def test_torch_is_found_without_being_imported(python):
    done = python(
        "import sys\n"
        "from cuda_morph_sim import toolchain\n"
        "found = toolchain.find_torch()\n"
        "assert 'torch' not in sys.modules\n"
        "import torch\n"
        "assert found == toolchain.find_torch(), found\n"
        "print(found.version)\n"
    )
    assert done.stdout.strip()


def test_no_torch_is_no_installation(python):
    program = (
        "import sys\n"
        "sys.path = [p for p in sys.path if 'site-packages' not in p]\n"
        "sys.meta_path = [f for f in sys.meta_path if 'editable' not in type(f).__name__.lower()]\n"
        "from cuda_morph_sim import toolchain\n"
        "print(toolchain.find_torch())\n"
    )
    assert python(program).stdout.strip() == "None"


def test_cxx_names_the_compiler(monkeypatch):
    monkeypatch.setenv("CXX", f"{sys.executable} -flag")
    assert toolchain.find_compiler() == [sys.executable, "-flag"]
    monkeypatch.setenv("CXX", "/nowhere/compiler")
    assert toolchain.find_compiler() is None


def test_no_compiler_on_the_path_is_none(monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert toolchain.find_compiler() is None


def test_abi_names_interpreter_and_platform():
    abi = toolchain.python_abi()
    assert f"{sys.version_info.major}{sys.version_info.minor}" in abi
    assert "." not in abi
