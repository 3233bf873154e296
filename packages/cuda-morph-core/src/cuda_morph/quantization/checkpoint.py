"""Reading how a checkpoint is quantised, from the files that quantisers write."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cuda_morph.errors import SettingError
from cuda_morph.frozen_record import frozen_record
from cuda_morph.json_input import read_object

if TYPE_CHECKING:
    from pathlib import Path

CONFIG, MODELOPT = "config.json", "hf_quant_config.json"
FILES = (CONFIG, MODELOPT, "quantize_config.json", "quant_config.json")
"""Where quantisers write, in the order in which they are asked."""
_SECTIONS = ("quantization_config", "compression_config")
_SHOWN = (
    *("bits", "w_bit", "group_size", "q_group_size", "sym", "desc_act", "zero_point", "format"),
    *("activation_scheme", "weight_block_size", "version", "checkpoint_format"),
    *("load_in_4bit", "load_in_8bit", "bnb_4bit_quant_type", "quant_algo", "kv_cache_quant_algo"),
)
_LISTS = ("modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers")
_HINT = "Give the folder of a model, or its config.json."
_MODELOPT_NAMES = {"NVFP4": "modelopt_fp4", "MXFP8": "modelopt_mxfp8"}
"""vLLM's names for algorithms of ModelOpt; all others are its ``modelopt``."""


@frozen_record
class Quantization:
    """What a checkpoint says of itself."""

    method: str
    """As transformers and vLLM spell it, e.g. ``gptq``."""
    file: str
    facts: tuple[tuple[str, str], ...] = ()


def read(path: Path) -> Quantization | None:
    """Reads a model's folder or one of its files.

    Args:
        path: A folder with one of `FILES`, or such a file under any name.

    Returns:
        How the model is quantised; ``None`` when it is not.

    Raises:
        MorphError: There is no such file, or it cannot be read.
        SettingError: It cannot be understood.
    """
    if path.is_dir():
        files = [path / name for name in FILES if (path / name).is_file()]
        if not files:
            hint = f"A model's folder has one of: {', '.join(FILES)}."
            raise SettingError(f"{path} has no file that describes a model.", hint=hint)
    else:
        files = [path]
    for file in files:
        found = _quantization(read_object(file, hint=_HINT), file)
        if found is not None:
            return found
    return None


def _object(value: object, where: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    hint = "A configuration is an object: {...}."
    raise SettingError(f"{where} holds {type(value).__name__} instead of an object.", hint=hint)


def _quantization(content: dict[str, Any], file: Path) -> Quantization | None:
    # Models of several parts keep the description with the part that is quantised.
    parts = [content, *(content[key] for key in ("text_config", "llm_config") if key in content)]
    for part in parts:
        for section in _SECTIONS:
            if isinstance(part, dict) and part.get(section) is not None:
                inner = _object(part[section], f"{section} of {file}")
                return _describe(inner, file, section)
    if isinstance(content.get("quantization"), dict):
        return _modelopt(content["quantization"], file)
    is_quantisers_own = file.name not in (CONFIG, MODELOPT)
    if is_quantisers_own and {"bits", "w_bit", "quant_method"} & content.keys():
        return _describe(content, file, file.name)
    return None


def _describe(section: dict[str, Any], file: Path, where: str) -> Quantization | None:
    method = section.get("quant_method")
    if method is None:
        method = _method_without_name(section)
    if method is None and section.get("quant_algo") is not None:
        return _modelopt(section, file)
    if method == "modelopt":
        return _modelopt(section, file)
    if not isinstance(method, str) or not method.strip():
        hint = f"quant_method is {method!r}; it names the method, such as 'gptq'."
        raise SettingError(f"{where} of {file} does not say which method it is.", hint=hint)
    return Quantization(method=method.strip().lower(), file=str(file), facts=_facts(section))


def _method_without_name(section: dict[str, Any]) -> str | None:
    """Old files have no name: their own words tell."""
    if section.get("load_in_4bit") or section.get("load_in_8bit"):
        return "bitsandbytes"
    if "w_bit" in section:
        return "awq"
    if "bits" in section and ("desc_act" in section or "damp_percent" in section):
        return "gptq"
    return None


def _modelopt(section: dict[str, Any], file: Path) -> Quantization | None:
    algorithm = section.get("quant_algo")
    if algorithm is None:
        return None
    if not isinstance(algorithm, str):
        hint = f"quant_algo is {algorithm!r}; it names an algorithm, such as 'FP8'."
        raise SettingError(f"{file} does not say how it is quantised.", hint=hint)
    method = _MODELOPT_NAMES.get(algorithm.upper(), "modelopt")
    return Quantization(method=method, file=str(file), facts=_facts(section))


def _facts(section: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    found = [(key, json.dumps(section[key])[:80]) for key in _SHOWN if key in section]
    counted = [(key, section[key]) for key in _LISTS if isinstance(section.get(key), list)]
    return (*found, *((key, f"{len(items)} entries") for key, items in counted))
