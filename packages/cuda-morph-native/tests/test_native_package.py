"""The extension itself: what it hooks, and that unhooking leaves nothing behind."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

cuda_morph_native = pytest.importorskip("cuda_morph_native")


def run(code: str) -> str:
    """Returns what a fresh process prints: the hooks change the whole process."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_extension_is_built_here():
    assert cuda_morph_native.AVAILABLE, cuda_morph_native.REASON
    assert cuda_morph_native.REASON == ""


def test_import_needs_no_torch():
    assert run("import sys, cuda_morph_native; print('torch' in sys.modules)") == "False"


def test_a_missing_extension_is_a_reason_and_no_error(tmp_path):
    package = tmp_path / "cuda_morph_native"
    package.mkdir()
    package.joinpath("__init__.py").write_text(Path(cuda_morph_native.__file__).read_text())
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import cuda_morph_native as n; print(n.AVAILABLE, n.REASON)"
    )
    out = run(code)
    assert out.startswith("False the extension of cuda-morph-native is not built")


def test_device_strings_are_hooked_and_unhooked():
    out = run(
        """
        import torch
        from cuda_morph_native import native
        before = torch.device("cuda:3")
        slots = native.hook_device_strings(0, "cpu", False)
        hooked = torch.empty(1, device="cuda").device, torch.device("cuda:3"), torch.device("meta")
        count = native.redirected_string_count()
        native.unhook_device_strings()
        print(slots > 0, *hooked, count >= 2, torch.device("cuda:3") == before)
        """
    )
    assert out == "True cpu cpu meta True True"


@pytest.mark.parametrize("text", ["cuda:01", "cuda:", "cuda:x", "cudax", "cuda:999", ""])
def test_malformed_strings_keep_the_error_of_pytorch(text):
    out = run(
        f"""
        import torch
        from cuda_morph_native import native
        def error():
            try:
                return repr(torch.device({text!r}))
            except RuntimeError as problem:
                return str(problem).splitlines()[0]
        plain = error()
        native.hook_device_strings(0, "cpu", False)
        print(error() == plain, plain)
        """
    )
    assert out.startswith("True")


def test_a_name_that_does_not_fit_is_refused():
    out = run(
        """
        import torch
        from cuda_morph_native import native
        try:
            native.hook_device_strings(20, "a_name_of_sixteen", False)
        except ValueError as error:
            print(error)
        """
    )
    assert out == "device type name too long: a_name_of_sixteen"


def test_equal_strings_give_the_same_device_object_only_while_hooked():
    out = run(
        """
        import torch
        from cuda_morph_native import native
        native.hook_device_class(torch.device, False)
        same = torch.device("cpu") is torch.device("cpu")
        native.unhook_device_class()
        print(same, torch.device("cpu") is torch.device("cpu"))
        """
    )
    assert out == "True False"


def test_a_torch_function_mode_still_sees_torch_device():
    out = run(
        """
        import torch
        from torch.overrides import TorchFunctionMode
        from cuda_morph_native import native
        native.hook_device_class(torch.device, False)
        torch.device("cpu")
        class Seen(TorchFunctionMode):
            names = []
            def __torch_function__(self, func, types, args=(), kwargs=None):
                self.names.append(getattr(func, "__name__", str(func)))
                return func(*args, **(kwargs or {}))
        with Seen() as mode:
            torch.device("cpu")
        print(mode.names)
        """
    )
    native = run(
        """
        import torch
        from torch.overrides import TorchFunctionMode
        class Seen(TorchFunctionMode):
            names = []
            def __torch_function__(self, func, types, args=(), kwargs=None):
                self.names.append(getattr(func, "__name__", str(func)))
                return func(*args, **(kwargs or {}))
        with Seen() as mode:
            torch.device("cpu")
        print(mode.names)
        """
    )
    assert out == native


def test_event_takes_positional_options_only_while_hooked():
    out = run(
        """
        import torch
        from cuda_morph_native import native
        native.hook_event_class(torch.Event)
        event = torch.Event(True, False)
        native.unhook_event_class()
        try:
            torch.Event(True)
        except TypeError:
            print("event_flag=1" in repr(event), "refused again")
        """
    )
    assert out == "True refused again"


def test_the_cuda_method_reads_arguments_as_pytorch_does():
    out = run(
        """
        import torch
        from cuda_morph_native import native
        native.hook_device_strings(0, "cpu", False)
        torch.Tensor.cuda = native.make_cuda_method(torch._C.TensorBase, torch.device("cpu"))
        x = torch.ones(2)
        for arguments in ({"nonsense": 1}, {"device": "cpu", "async": True}):
            try:
                print(x.cuda(**arguments).device.type)
            except TypeError as error:
                print(error)
        try:
            x.cuda("cpu", device="cpu")
        except TypeError as error:
            print(error)
        """
    )
    assert out.splitlines() == [
        "cuda() got an unexpected keyword argument 'nonsense'",
        "cpu",
        "cuda() got multiple values for argument 'device'",
    ]
