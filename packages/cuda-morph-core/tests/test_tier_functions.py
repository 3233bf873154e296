"""What tier T3 wraps, compared with PyTorch's own stubs, and how it translates."""

from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path

import pytest
import torch

from cuda_morph.interception import constructors, device_functions
from cuda_morph.interception.constructors import original_constructor, replace_constructor
from cuda_morph.interception.device_arguments import DeviceNames, WrappedFunction
from cuda_morph.patching import Journal

STUBS = Path(torch.__file__).parent / "_C"
LEFT_OUT = {
    # Replaced by methods of their own.
    "TensorBase.cuda",
    # Constructors are replaced as such.
    "device.__init__",
    "Generator.__init__",
    "Stream.__new__",
    "Event.__new__",
    # Takes the device of an existing tensor only; PyTorch refuses any other.
    "TensorBase.__init__",
    # Reached through torch.jit.load, which makes a device of the string first.
    "_load_for_lite_interpreter",
    "_load_for_lite_interpreter_from_buffer",
    "import_ir_module",
    "import_ir_module_from_buffer",
    "_import_ir_module_from_package",
    # Reached through Module.to and PackedSequence.to, which are wrapped.
    "_parse_to",
    # Means Intel's device by its name.
    "TensorBase.xpu",
    # Registers a class for a device; called by device adapters at import.
    "_register_py_class_for_device",
    # Take devices, not strings.
    "Event.from_ipc_handle",
    "_construct_storage_from_data_pointer",
    "_torchDeviceToDLDevice",
    "TensorBase._make_subclass",
}


def stubbed() -> set[str]:
    """Returns the functions whose stubs say that a parameter is a device or its name."""
    found: set[str] = set()
    for name in ("__init__.pyi", "_VariableFunctions.pyi", "_nn.pyi"):
        found |= set(_with_devices(ast.parse((STUBS / name).read_text()).body, ""))
    return found


def _with_devices(body: list[ast.stmt], prefix: str) -> list[str]:
    found = []
    for node in body:
        if isinstance(node, ast.ClassDef):
            found += _with_devices(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef) and any(map(_is_device, _parameters(node))):
            found.append(prefix + node.name)
    return found


def _parameters(node: ast.FunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _is_device(parameter: ast.arg) -> bool:
    annotation = ast.unparse(parameter.annotation) if parameter.annotation else ""
    by_name = parameter.arg in ("device", "device_type") and re.search(r"\bstr\b", annotation)
    return bool(by_name or re.search(r"DeviceLikeType|\b_?device\b", annotation))


def wrapped() -> set[str]:
    functions = {found.name.rpartition(".")[2] for found in device_functions.functions()}
    methods = {f"TensorBase.{found.name}" for found in device_functions.methods()}
    return functions | methods


def is_private_to_a_device(name: str) -> bool:
    return name.startswith(("_cuda_", "_xpu_", "_mtia_", "_Cuda", "_Xpu", "Future"))


def test_every_function_with_a_device_in_pytorchs_stubs_is_wrapped() -> None:
    missing = {
        name for name in stubbed() - wrapped() - LEFT_OUT if not is_private_to_a_device(name)
    }
    assert missing == set()


def test_exceptions_are_still_in_the_stubs() -> None:
    assert stubbed() >= LEFT_OUT


def test_nothing_without_a_device_is_wrapped() -> None:
    names = wrapped()
    assert len(names) > 60
    assert not names & {"add", "mm", "eq", "ne", "stack", "TensorBase.eq", "TensorBase.add"}


def test_devices_may_lead_only_where_pytorch_allows_it() -> None:
    methods = {found.name: found.leading for found in device_functions.methods()}
    assert methods["to"] is True
    assert methods["new_zeros"] is False
    functions = {found.name: found.leading for found in device_functions.functions()}
    assert functions["zeros"] is False
    assert functions["_C.get_autocast_dtype"] is True


@pytest.mark.parametrize("text", ["cuda", "cuda:0", "cuda:1", "cuda:127"])
def test_device_strings_are_translated(text: str) -> None:
    assert DeviceNames("npu").native(text) == text.replace("cuda", "npu")
    assert DeviceNames("cpu").native(text) == "cpu"


@pytest.mark.parametrize(
    "value",
    [
        "",
        "cud",
        "CUDA",
        "cudax",
        " cuda",
        "cuda ",
        "cuda:",
        "cuda:x",
        "cuda:01",
        "cuda:-1",
        "cuda:128",
        "cuda:1:2",
        "cuda:\u0661",
        "cuda0",
        "barracuda",
        "/data/cuda",
        "my_cuda_model.pt",
        "cpu:gloo,cuda:nccl",
        b"cuda",
        0,
        None,
        ["cuda"],
        ("cuda",),
        {"cuda": 1},
        torch.device("cuda"),
    ],
)
def test_everything_else_is_left_alone(value: object) -> None:
    assert DeviceNames("npu").native(value) is value


def test_translation_ends_when_retired() -> None:
    names = DeviceNames("npu")
    names.retire()
    assert names.native("cuda:1") == "cuda:1"


def test_wrapped_functions_equal_the_original() -> None:
    wrapper = WrappedFunction(torch.zeros, DeviceNames("meta"), "device", leading=False)
    assert wrapper == torch.zeros
    assert torch.zeros == wrapper
    assert wrapper != torch.ones
    assert {torch.zeros: 1}[wrapper] == 1
    assert {wrapper, torch.zeros} == {torch.zeros}
    assert wrapper.__name__ == "zeros"
    assert wrapper.__doc__ == torch.zeros.__doc__
    assert pickle.loads(pickle.dumps(wrapper)) is torch.zeros


def test_wrapped_functions_keep_the_callers_keywords() -> None:
    wrapper = WrappedFunction(torch.zeros, DeviceNames("meta"), "device", leading=False)
    keywords = {"device": "cuda", "dtype": torch.float64}
    assert wrapper(2, **keywords).device.type == "meta"
    assert keywords == {"device": "cuda", "dtype": torch.float64}
    with pytest.raises(TypeError, match="devise"):
        wrapper(2, devise="cuda")


def test_the_layout_of_classes_is_known_here() -> None:
    assert constructors.mismatch(torch.device, torch.Generator, torch.Stream) == ""


def test_another_layout_is_an_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = list(constructors.TypeObject._fields_)
    shifted = type(
        "Shifted", (constructors.ctypes.Structure,), {"_fields_": fields[:6] + fields[7:]}
    )
    monkeypatch.setattr(constructors, "TypeObject", shifted)
    assert "layout" in constructors.mismatch(torch.device)


def test_another_interpreter_is_an_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constructors.sys.implementation, "name", "pypy")
    assert "CPython" in constructors.mismatch(torch.device)


def test_constructors_are_replaced_and_put_back() -> None:
    pointer = constructors.type_object(torch.Generator).tp_new
    entry = vars(torch.Generator)["__new__"]
    original = original_constructor(torch.Generator)
    seen = []

    def new(cls: type, *args: object, **kwargs: object) -> object:
        seen.append((args, kwargs))
        return original(cls, args, kwargs)

    journal = Journal()
    replace_constructor(journal, torch.Generator, new)
    try:
        assert type(torch.Generator("cpu")) is torch.Generator
        assert torch.Generator(device="cpu").device.type == "cpu"
        with pytest.raises(TypeError):
            torch.Generator(1.5)
    finally:
        journal.rollback()
    assert seen == [(("cpu",), {}), ((), {"device": "cpu"}), ((1.5,), {})]
    assert constructors.type_object(torch.Generator).tp_new == pointer
    assert vars(torch.Generator)["__new__"] is entry
    assert torch.Generator("cpu").device.type == "cpu"


def test_subclasses_follow_the_replaced_constructor_and_return() -> None:
    class Storage(torch.UntypedStorage):
        pass

    pointer = constructors.type_object(Storage).tp_new
    original = original_constructor(torch._C.StorageBase)
    journal = Journal()
    replace_constructor(
        journal, torch._C.StorageBase, lambda cls, *args, **kwargs: original(cls, (7,), kwargs)
    )
    try:
        assert len(Storage(3)) == 7
        assert type(Storage(3)) is Storage
        assert len(torch.UntypedStorage(3)) == 7
    finally:
        journal.rollback()
    assert constructors.type_object(Storage).tp_new == pointer
    assert len(Storage(3)) == len(torch.UntypedStorage(3)) == 3
