"""``cuda-morph scaffold``: what it writes builds, computes and refuses; declarations are read strictly."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from cuda_morph.cli.group import cli
from cuda_morph.errors import MorphError, PluginError, SettingError
from cuda_morph.scaffolding import operator_targets
from cuda_morph.scaffolding.operator_expression import translate
from cuda_morph.scaffolding.operator_project import operator_files
from cuda_morph.scaffolding.operator_spec import KINDS, example, read_spec
from cuda_morph.scaffolding.operator_targets import find_target


def scaffold(*arguments):
    command = ["scaffold", *map(str, arguments)]
    result = CliRunner().invoke(cli, command, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


def declared(kind="elementwise", **changes):
    return example("my_op", kind) | changes


def tensor(name, shape, dtype="float32"):
    return {"name": name, "dtype": dtype, "shape": shape}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written(kind, tmp_path):
    result = scaffold("my_op", "--kind", kind, "--into", tmp_path / "op", "--format", "json")
    assert result.return_value == 0
    assert set(json.loads(result.output)["files"]) == {
        "README.md",
        "spec.json",
        "csrc/my_op.cpp",
        "my_op_op/__init__.py",
        "tests/test_my_op.py",
    }
    for path in tmp_path.rglob("*.py"):
        compile(path.read_text(), str(path), "exec")
        assert "$" not in path.read_text()
    # What was written declares the same operator again.
    content = json.loads((tmp_path / "op" / "spec.json").read_text())
    again = operator_files(content, find_target("generic"))
    assert again["csrc/my_op.cpp"] == (tmp_path / "op" / "csrc" / "my_op.cpp").read_text()


def test_the_readme_speaks_of_an_alignment_where_there_is_one():
    for alignment, words in ((1, "any size"), (32, "multiple of 32 bytes")):
        files = operator_files(declared(alignment=alignment), find_target("generic"))
        assert words in files["README.md"]


@pytest.mark.parametrize(
    ("text", "cpp", "torch"),
    [
        ("x + y", "(x + y)", "(x + y)"),
        ("x - (y - x)", "(x - (y - x))", "(x - (y - x))"),
        ("-x * 2", "((-x) * compute_t(2.0))", "((-x) * 2.0)"),
        ("x / (1 + exp(-y))", "(x / (compute_t(1.0) + std::exp((-y))))", "(x / (1.0 + torch.exp((-y))))"),
    ],
)  # fmt: skip
def test_formulas(text, cpp, torch):
    assert translate(text, {"x", "y"}) == (cpp, torch)


@pytest.mark.parametrize(
    "text",
    ["", "1", "x +", "z", "x.y", "x[0]", "__import__('os')", "exp", "exp(x, y)", "exp(1) + x", "x ** 2",
     "x // 2", "x if y else x", "lambda: x", "x; y", "x\ny", "f(x)", "x + 'a'", "x + True", "x + 1e999",
     "x + 1j", "exp(x=y)", "exp(*x)", "x @ y", "x and y", "+" * 400 + "x", "x" * 501, "x + 0x" + "f" * 400,
     "(" * 240 + "x" + ")" * 240, "x); system(", "\0"],
)  # fmt: skip
def test_formulas_that_are_refused(text):
    with pytest.raises(SettingError):
        translate(text, {"x", "y"})


def test_a_formula_cannot_leave_its_line():
    content = declared(expression="(x\n  # */ #error\n + y)", alignment=32)
    for name in operator_targets.targets():
        for text in operator_files(content, find_target(name)).values():
            assert "#error" not in text.replace(json.dumps(content["expression"]), "")


def test_formulas_of_whole_numbers():
    assert translate("x * 3", {"x"}, whole=True)[0] == "(x * compute_t(3))"
    for text in ("x / 2", "x * 0.5", "exp(x)", f"x + {1 << 40}"):
        with pytest.raises(SettingError):
            translate(text, {"x"}, whole=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "name of an operator"),
        (declared(extra=1), "unknown: extra"),
        (declared(name="class"), "name of an operator"),
        (declared(name="a b"), "name of an operator"),
        (declared(name="../x"), "name of an operator"),
        (declared(name="a__b"), "name of an operator"),
        (declared(name=["a"]), "name of an operator"),
        (declared(name="check"), "name of an operator"),
        (declared() | {"kind": "conv"}, "kind must be"),
        (declared() | {"kind": ["x"]}, "kind must be"),
        (declared(inputs=None), "inputs must be a list"),
        (declared(inputs=[]), "inputs are needed"),
        (declared(inputs=[1]), "a tensor has"),
        (declared(inputs=[tensor("template", ["n"])]), "name of a tensor"),
        (declared(inputs=[tensor("source", ["n"])]), "name of a tensor"),
        (declared(inputs=[tensor("exp", ["n"])]), "name of a tensor"),
        (declared(inputs=[tensor("x", ["n"], "complex64")]), "dtype"),
        (declared(inputs=[tensor("x", ["n"], ["float32"])]), "dtype"),
        (declared(inputs=[tensor("x", [])]), "needs a shape"),
        (declared(inputs=[tensor("x", ["n", "..."])]), "no size"),
        (declared(inputs=[tensor("x", [0])]), "no size"),
        (declared(inputs=[tensor("x", [True])]), "no size"),
        (declared(inputs=[tensor("x", ["n); //"])]), "no size"),
        (declared(inputs=[tensor("x", [1 << 30, 1 << 30])]), "4,611,686,018,427,387,904 bytes"),
        (declared(inputs=[tensor("x", ["n"]), tensor("x", ["n"])]), "same name"),
        (declared(inputs=[tensor("x", ["..."]), tensor("y", ["n"])]), "one shape"),
        (declared(inputs=[tensor("x", ["...", "n"], "float64")]), "one dtype"),
        (declared(outputs=[]), "one output"),
        (declared(expression="x + z"), "formula"),
        (declared(expression=["x"]), "formula"),
        (declared(gradients={"z": "grad"}), "no input"),
        (declared(gradients={"x": "2"}), "formula"),
        (declared(gradients=[1]), "gradients must"),
        (declared(alignment=3), "power of two"),
        (declared(alignment=0), "power of two"),
        (declared(alignment=True), "power of two"),
        (declared(alignment="32"), "power of two"),
        (declared(alignment=2), "no multiple of float32"),
        (declared("reduction", reduce="mean"), "reduce is one of"),
        (declared("reduction", expression="x"), "no expression"),
        (declared("reduction", gradients={"x": "grad"}), "gradients are written"),
        (declared("reduction", outputs=[tensor("out", ["n"])]), "takes away"),
        (declared("matmul", outputs=[tensor("out", ["m", "k"])]), "shapes must be"),
        (declared("matmul", reduce="sum"), "no reduce"),
    ],
)
def test_declarations_that_are_refused(content, message):
    with pytest.raises(SettingError, match=message):
        read_spec(content)


def test_alignment_is_enforced_in_the_declaration():
    def fixed(size, alignment):
        return declared(
            inputs=[tensor("x", [size])],
            outputs=[tensor("out", [size])],
            expression="x",
            gradients={},
            alignment=alignment,
        )

    assert read_spec(fixed(16, 32)).alignment == 32
    with pytest.raises(SettingError, match="60 bytes, no multiple of 32") as caught:
        read_spec(fixed(15, 32))
    assert "multiple of 8 elements" in caught.value.hint
    assert read_spec(declared(), least_alignment=32).alignment == 32
    with pytest.raises(SettingError, match="needs an alignment of 32"):
        read_spec(declared(alignment=16), least_alignment=32)


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 100_000, "\xff"])
def test_files_that_are_no_declaration(text, tmp_path):
    path = tmp_path / "spec.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(SettingError):
        scaffold("my_op", "--spec", path, "--into", tmp_path / "op")
    assert list(tmp_path.iterdir()) == [path]


def test_what_has_no_end_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge.json").open("wb") as stream:
        stream.truncate(1 << 40)
    for path, words in (
        (tmp_path / "pipe", "no file"),
        (tmp_path / "huge.json", "bytes"),
        (tmp_path, "a folder"),
        ("/dev/zero", "no file"),
    ):
        with pytest.raises(SettingError, match=words) as caught:
            scaffold("my_op", "--spec", path, "--into", tmp_path / "op")
        assert "scaffold OPNAME" in caught.value.hint
    assert not (tmp_path / "op").exists()


def test_words_of_the_command_line(tmp_path):
    into = ("--into", tmp_path / "op")
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(declared()))
    with pytest.raises(SettingError, match="says name 'my_op'"):
        scaffold("other", "--spec", path, *into)
    with pytest.raises(SettingError, match="says kind"):
        scaffold("my_op", "--spec", path, "--kind", "matmul", *into)
    with pytest.raises(SettingError, match="no target 'nothing'"):
        scaffold("my_op", "--target", "nothing", *into)
    with pytest.raises(MorphError, match="cannot be read") as caught:
        scaffold("my_op", "--spec", tmp_path / "none.json", *into)
    assert caught.value.code == "CM-E15"
    assert list(tmp_path.iterdir()) == [path]
    assert scaffold("my_op", "--spec", path, *into).return_value == 0
    with pytest.raises(SettingError, match="nothing was written"):
        scaffold("my_op", "--spec", path, *into)


def test_a_plugin_brings_a_target(fake_site, tmp_path, monkeypatch):
    fake_site.add("mychip", "raise RuntimeError('plugins are not imported for this')")
    module = next(
        c.entry_point.value for c in operator_targets.list_candidates() if c.name == "mychip"
    )
    package = tmp_path / "package"
    folder = package / "operator_templates" / "chiplang"
    (folder / "matmul").mkdir(parents=True)
    (folder / "matmul" / "NAME.chip.tmpl").write_text("$name $element $alignment $reference")
    description = {"alignment": 64, "types": {"float32": "f32"}, "source": "a manual"}
    (folder / "target.json").write_text(json.dumps(description))
    found = operator_targets._package_folders
    monkeypatch.setattr(
        operator_targets,
        "_package_folders",
        lambda name: [package] if name == module.partition(".")[0] else found(name),
    )
    target = find_target("chiplang")
    assert (target.kinds, target.alignment) == (("matmul",), 64)
    assert operator_files(declared("matmul"), target)["my_op.chip"] == "my_op f32 64 a @ b"
    with pytest.raises(SettingError, match="no template for the kind"):
        operator_files(declared(), target)
    tensors = [tensor("a", ["m", "k"], "int64"), tensor("b", ["k", "n"], "int64")]
    whole = declared("matmul", inputs=tensors, outputs=[tensor("out", ["m", "n"], "int64")])
    with pytest.raises(SettingError, match="no word for int64"):
        operator_files(whole, target)
    for broken in ("", "{}", '{"alignment": "x", "types": {}, "source": ""}', '{"types": [1]}'):
        (folder / "target.json").write_text(broken)
        with pytest.raises(PluginError, match="chiplang"):
            find_target("chiplang")


SILU = declared(
    name="scaled_silu",
    alignment=32,
    expression="w * x / (1 + exp(-x))",
    inputs=[tensor("x", ["...", "n"]), tensor("w", ["...", "n"])],
    gradients={
        "x": "grad * w * (1 + exp(-x) + x * exp(-x)) / ((1 + exp(-x)) * (1 + exp(-x)))",
        "w": "grad * x / (1 + exp(-x))",
    },
)
HALF_MAX = declared(
    "reduction",
    name="row_max",
    reduce="max",
    alignment=32,
    inputs=[tensor("x", ["...", "n"], "float16")],
    outputs=[tensor("out", ["..."], "float16")],
)
HALF = declared(
    name="half_op",
    alignment=32,
    expression="tanh(x) * -w - 2.5e-3",
    inputs=[tensor("x", [3, 16], "float16"), tensor("w", [3, 16], "float16")],
    outputs=[tensor("out", [3, 16], "float16")],
    gradients={"x": "grad * -w * (1 - tanh(x) * tanh(x))"},
)
MATMUL = declared("matmul", name="my_mm", alignment=32)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_operators_build_and_pass_their_tests_on_the_simulated_device(tmp_path):
    for content in (SILU, HALF, HALF_MAX, MATMUL):
        path = tmp_path / f"{content['name']}.json"
        path.write_text(json.dumps(content))
        folder = tmp_path / content["name"]
        scaffold(content["name"], "--spec", path, "--into", folder)
        env = {
            **os.environ,
            "TORCH_EXTENSIONS_DIR": str(tmp_path / "built"),
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "cuda_morph", "run", "--backend", "sim", "-m", "pytest"]
        done = subprocess.run(
            [*command, "-v", "-p", "no:cacheprovider", "tests"],
            cwd=folder, env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        # On the CPU and on the device: a test that never saw the device proves half of it.
        assert "test_values[cpu] PASSED" in done.stdout
        on_device = done.stdout.count("] PASSED") - done.stdout.count("[cpu] PASSED")
        assert on_device == (4 if content in (SILU, HALF) else 3), done.stdout
