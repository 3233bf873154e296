"""``cuda-morph quant``: files of quantisers, good, bad and hostile, and what backends answer."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from fake_distributions import source

from cuda_morph.cli.group import cli
from cuda_morph.errors import SettingError
from cuda_morph.quantization.checkpoint import read

METHODS = """
@hookimpl
def cuda_morph_quantization():
    yield QuantizationMethod(method="gptq", support=Support.PARTIAL, note="4 bit", source="the doc")
    yield QuantizationMethod(method="awq", support=Support.NEVER, source="the doc")
    yield QuantizationMethod(method="fp8_mychip", support=Support.FULL, source="the doc")
    yield QuantizationMethod(method="compressed_tensors", support=Support.FULL)
"""


def section(**words):
    return {"model_type": "llama", "quantization_config": words}


@pytest.mark.parametrize(
    ("name", "content", "method"),
    [
        ("config.json", section(quant_method="gptq", bits=4), "gptq"),
        ("config.json", section(quant_method="AWQ", bits=4), "awq"),
        ("config.json", section(load_in_4bit=True), "bitsandbytes"),
        ("config.json", section(quant_method="modelopt", quant_algo="NVFP4"), "modelopt_fp4"),
        ("config.json", section(quant_method="modelopt", quant_algo="FP8"), "modelopt"),
        ("config.json", {"text_config": section(quant_method="fp8")}, "fp8"),
        ("config.json", {"compression_config": {"quant_method": "sparseml"}}, "sparseml"),
        ("config.json", {"model_type": "llama", "quantization_config": None}, None),
        ("config.json", {"model_type": "llama", "bits": 4, "desc_act": True}, None),
        ("quantize_config.json", {"bits": 4, "group_size": 128, "desc_act": False}, "gptq"),
        ("quant_config.json", {"w_bit": 4, "q_group_size": 128, "zero_point": True}, "awq"),
        ("hf_quant_config.json", {"quantization": {"quant_algo": "MXFP8"}}, "modelopt_mxfp8"),
        ("hf_quant_config.json", {"quantization": {"quant_algo": None}}, None),
    ],
)
def test_files_of_quantisers(tmp_path, name, content, method):
    (tmp_path / name).write_text(json.dumps(content))
    for path in (tmp_path, tmp_path / name):
        found = read(path)
        assert (found and found.method) == method
        assert found is None or found.file == str(tmp_path / name)


def test_the_quantisers_file_counts_where_the_models_says_nothing(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "quantize_config.json").write_text('{"bits": 3, "desc_act": true}')
    found = read(tmp_path)
    assert found.method == "gptq"
    assert ("bits", "3") in found.facts


def test_a_real_configuration_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.PretrainedConfig()
    config.quantization_config = transformers.AwqConfig(bits=4, group_size=64).to_dict()
    config.save_pretrained(tmp_path)
    found = read(tmp_path)
    assert found.method == "awq"
    assert ("group_size", "64") in found.facts


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no valid JSON"),
        (b"{", "no valid JSON"),
        (b"[" * 200_000, "no valid JSON"),
        (b"\xff\xfe\x00\x01", "UTF-8"),
        (b"[1, 2]", "instead of an object"),
        (b'{"quantization_config": "gptq"}', "instead of an object"),
        (b'{"quantization_config": {"bits": 4}}', "which method"),
        (b'{"quantization_config": {"quant_method": 7}}', "which method"),
        (b'{"quantization_config": {"quant_method": " "}}', "which method"),
        (b'{"quantization": {"quant_algo": ["FP8"]}}', "how it is quantised"),
    ],
)
def test_bad_files_are_refused_in_words(tmp_path, content, words):
    file = tmp_path / "config.json"
    file.write_bytes(content)
    with pytest.raises(SettingError, match=words) as caught:
        read(tmp_path)
    assert caught.value.hint


def test_a_huge_file_is_not_read(tmp_path):
    file = tmp_path / "config.json"
    with file.open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(
        SettingError, match=r"1,099,511,627,776 bytes; 67,108,864 are allowed"
    ) as caught:
        read(file)
    assert str(caught.value).count("CM-E") == 1


def test_a_pipe_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SettingError, match="no file"):
        read(tmp_path / "pipe")
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(SettingError, match="no file that describes"):
        read(tmp_path)


def quant(*words):
    result = CliRunner().invoke(cli, ["quant", *map(str, words)], standalone_mode=False)
    return result.return_value, result.output


def write(folder, method):
    (folder / "config.json").write_text(json.dumps(section(quant_method=method, bits=4)))
    return folder


@pytest.mark.parametrize(
    ("method", "support", "code", "words"),
    [
        ("gptq", "partial", 0, "the doc"),
        ("awq", "never", 1, "the doc"),
        ("compressed-tensors", "full", 0, ""),
        ("fp8", "unknown", 1, "fp8_mychip"),
        ("hqq", "unknown", 1, "says nothing"),
    ],
)
def test_answers_come_from_the_plugins_records(fake_site, tmp_path, method, support, code, words):
    fake_site.add("mychip", source("mychip", extra=METHODS))
    model = tmp_path / "model"
    model.mkdir()
    result, out = quant(write(model, method), "--backend", "mychip", "--format", "json")
    assert result == code
    [answer] = json.loads(out)["answers"]
    assert answer["backend"] == "mychip"
    assert answer["support"] == support
    assert words in answer["note"] + answer["source"]


def test_all_backends_answer_and_a_broken_one_is_left_out(fake_site, tmp_path):
    fake_site.only_fakes()
    fake_site.add("mychip", source("mychip", extra=METHODS))
    fake_site.add("silent", source("silent"))
    fake_site.add("broken", "1 / 0")
    code, out = quant(write(tmp_path, "gptq"))
    assert code == 0
    assert "4 bit" in out
    assert "makes no claims" in out
    assert "broken" not in out


def test_command_line(tmp_path):
    def run(*words):
        command = [sys.executable, "-m", "cuda_morph", "quant", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    missing = run(tmp_path / "nowhere")
    assert missing.returncode == 2
    assert "cannot be read" in missing.stderr
    assert "Traceback" not in missing.stderr
    assert "config.json" in run(tmp_path).stderr
    (tmp_path / "config.json").write_text("{}")
    plain = run(tmp_path)
    assert plain.returncode == 0
    assert "not quantised" in plain.stdout
    assert run(tmp_path, "--backend", "cpu").returncode == 0
    write(tmp_path, "gptq")
    assert run(tmp_path, "--backend", "no-such").returncode == 2
