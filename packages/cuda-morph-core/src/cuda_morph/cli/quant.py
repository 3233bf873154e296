"""``cuda-morph quant``: which backends have kernels for a quantised model."""

from __future__ import annotations

from pathlib import Path

import click

from cuda_morph.cli import output

COLUMNS = ("backend", "answer", "note", "source")


@click.command()
@click.argument("path", metavar="CONFIG_OR_DIR", type=click.Path(path_type=Path))
@click.option("--backend", metavar="NAME", help="Only this backend; exit code 1 without kernels.")
@output.format_option
def quant(path: Path, backend: str | None, output_format: str) -> int:
    r"""Read how a model is quantised, and say which backends have kernels for it.

    CONFIG_OR_DIR is a model's folder, or its config.json, hf_quant_config.json,
    quantize_config.json or quant_config.json. Weights are not read.

    Each answer is what the backend's plugin claims, with the source. Nothing is claimed where the
    vendor says nothing: the answer is unknown.

    \b
    Examples:
      cuda-morph quant ./Qwen2.5-7B-Instruct-AWQ
      cuda-morph quant model/config.json --backend cpu
    """
    from cuda_morph.quantization.answers import USABLE_SUPPORT, ask
    from cuda_morph.quantization.checkpoint import read

    found = read(path)
    if found is None:
        if output_format == "json":
            output.write_json({"method": None, "file": None, "facts": {}, "answers": []})
        else:
            click.echo(f"{path}: the model is not quantised; no special kernels are needed.")
        return 0
    answers = ask(found.method, backend)
    if output_format == "json":
        report = {"method": found.method, "file": found.file, "facts": dict(found.facts)}
        output.write_json({**report, "answers": [answer.as_dict() for answer in answers]})
    else:
        output.write_pairs([("method", found.method), ("file", found.file), *found.facts])
        click.echo()
        rows = [(one.backend, one.support.value, one.note, one.source) for one in answers]
        output.write_table(COLUMNS, rows)
    usable = any(answer.support in USABLE_SUPPORT for answer in answers)
    return int(backend is not None and not usable)
