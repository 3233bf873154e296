"""CUDA dependences of files that are not Python: shell, images, requirements, C++."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cuda_morph.scan import cuda_text
from cuda_morph.scan.finding import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SHELL_VARIABLE = re.compile(
    r"(?:(?<=\$)|(?<=\$\{)|(?<![\w$./-]))(" + cuda_text.VARIABLE.pattern + r")\b"
)
_TOOL = re.compile(
    r"(?:^|[|;&(`]|\$\(|\b(?:exec|sudo|which|command -v|time|watch(?: -\S+)*(?: \d+)?)\s)\s*"
    r"((?:/\S*/)?(nvidia-smi|nvcc|nsys|ncu|nvprof|cuda-gdb))(?![\w.-])"
)
_IMAGE = re.compile(
    r"^\s*(?:FROM(?:\s+--\S+)*|(?:-\s*)?[\"']?image[\"']?\s*:)\s+[\"']?"
    r"((?:\S*/)?(?:nvidia/\S+|nvcr\.io/\S+|pytorch/pytorch\S*cuda\S*|\S*cuda\S*))",
    re.IGNORECASE,
)
_INCLUDE = re.compile(
    r"^\s*#\s*include\s*[<\"]((?:cuda|cublas|cudnn|cufft|curand|cusparse|cusolver|nccl|nvtx|nvToolsExt"
    r"|nvrtc|thrust/|cub/|cooperative_groups|c10/cuda/|ATen/cuda/|ATen/cudnn/|torch/csrc/cuda/)"
    r"[^>\"]*)[>\"]"
)
_CUDA_WHEEL = re.compile(
    r"(?<![\w-])((?:torch|torchvision|torchaudio|torchtext)\s*(?:[=~<>!]=?=?\s*[\w.]+)?\+cu\d+)"
    r"|(download\.pytorch\.org/whl/(?:nightly/|test/)?cu\d+)"
    r"|(?<![\w-])(pytorch-cuda|cudatoolkit|cuda-toolkit|cuda-nvcc)\b(?!-)"
)
_PACKAGE = re.compile(
    r"(?:^|[\s\"',=\[])(?:(nvidia-[a-z0-9-]+|pynvml|nvidia_ml_py\d*|tensorrt[\w-]*)"
    r"|(flash[-_]attn|bitsandbytes|xformers|apex|triton|cupy(?:-cuda\w+)?|pycuda|deepspeed-kernels"
    r"|auto[-_]gptq|autoawq[-_]kernels|transformer[-_]engine|cudf-cu\d+|cuml-cu\d+|faiss-gpu"
    r"|mamba[-_]ssm|causal[-_]conv1d|flashinfer[-\w]*))(?=\s*(?:$|[\[;@=<>!~,\"'#]))",
    re.IGNORECASE,
)


def scan_text(text: str, kind: str) -> list[Finding]:
    """Finds the CUDA dependences of a file line by line.

    Args:
        text: The file.
        kind: ``shell``, ``image``, ``requirements``, ``native`` or ``cuda``.

    Returns:
        Findings in order.
    """
    if kind == "cuda":
        return [_finding("CM502", 1, 1, 1, "CUDA source", text.partition("\n")[0])]
    if not any(True for _ in cuda_text.mentions(text)):
        return []
    look = _LOOKS[kind]
    found = []
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        for rule, start, end, symbol in look(line):
            found.append(_finding(rule, number, start + 1, end + 1, symbol, line))
    return found


def shell_line(line: str) -> Iterator[tuple[str, int, int, str]]:
    """Yields rule, start, end and symbol of what a line of a shell script depends on."""
    code = _without_comment(line)
    for match in _SHELL_VARIABLE.finditer(code):
        yield cuda_text.variable_rule(match[1]), match.start(1), match.end(1), match[1]
    for match in _TOOL.finditer(code):
        yield "CM715", match.start(1), match.end(1), match[2]
    if re.search(r"\b(?:pip3?|conda|mamba|uv)\b.*\binstall\b|\b(?:uv|poetry)\s+add\b", code):
        yield from _packages(code)


def image_line(line: str) -> Iterator[tuple[str, int, int, str]]:
    """Yields what a line of a Dockerfile or compose file depends on."""
    match = _IMAGE.search(line)
    if match:
        yield "CM714", match.start(1), match.end(1), match[1].rstrip("\"'")
        return
    command = re.sub(r"^\s*RUN\s", lambda found: " " * (len(found[0]) - 1) + ";", line)
    yield from shell_line(command)


def requirement_line(line: str) -> Iterator[tuple[str, int, int, str]]:
    """Yields what a line of a list of requirements depends on."""
    yield from _packages(_without_comment(line))


def native_line(line: str) -> Iterator[tuple[str, int, int, str]]:
    """Yields the CUDA headers that a line of C++ includes."""
    match = _INCLUDE.match(line)
    if match:
        yield "CM503", match.start(1), match.end(1), match[1]


_LOOKS: dict[str, Callable[[str], Iterator[tuple[str, int, int, str]]]] = {
    "shell": shell_line,
    "image": image_line,
    "requirements": requirement_line,
    "native": native_line,
}


def _packages(line: str) -> Iterator[tuple[str, int, int, str]]:
    for match in _CUDA_WHEEL.finditer(line):
        yield "CM711", match.start(), match.end(), match[0]
    for match in _PACKAGE.finditer(line):
        group = 1 if match[1] else 2
        rule = "CM712" if group == 1 else "CM713"
        yield rule, match.start(group), match.end(group), match[group].lower()


def _without_comment(line: str) -> str:
    return re.sub(r"(^|\s)#.*", r"\1", line)


def _finding(rule: str, line: int, column: int, end: int, symbol: str, text: str) -> Finding:
    place = Place(line=line, column=column, end_line=line, end_column=end)
    return Finding(rule=rule, place=place, symbol=symbol, excerpt=text.strip()[:160])
