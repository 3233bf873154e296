"""What the pages of commands show is what the commands print today."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[3] / "docs" / "user-guide"
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
SHOWN = {
    "new-plugin": ["cuda-morph new-plugin"],
    "scaffold": ["cuda-morph scaffold scaled_add"],
    "quant": ["cuda-morph quant Qwen"],
    "vllm": ["cuda-morph vllm"],
    "doctor": ["CUDA_MORPH_BAKEND=sim CUDA_VISIBLE_DEVICES=0,0 cuda-morph doctor --plugin ascend"],
    "explain": ["cuda-morph explain torch.cuda.memory_stats"],
    "error": ["cuda-morph error 507035"],
    "compile-advice": ["cuda-morph compile --backend sim:ascend"],
}
"""Pages and beginnings of the commands on them whose output is quick to make again."""
SLOW = {"compile-advice"}


def examples(page):
    """Commands of a page with the lines that it shows below each."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), flags=re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.splitlines()
            found.append((command.partition("  #")[0].strip(), lines))
    return found


def missing(shown, printed):
    """The first shown line that is not printed where it is shown; dots stand for anything."""
    at, anywhere = 0, False
    for line in shown:
        if line == "...":
            anywhere = True
            continue
        while anywhere and at < len(printed) and not fits(line, printed[at]):
            at += 1
        if at >= len(printed) or not fits(line, printed[at]):
            return line
        at, anywhere = at + 1, False
    return None


def fits(shown, printed):
    start, dots, _ = shown.partition("...")
    return printed.startswith(start.rstrip()) if dots else printed.rstrip() == shown.rstrip()


@pytest.mark.parametrize(
    ("shown", "line"),
    [
        (["a", "b"], None),
        (["b"], "b"),
        (["...", "b", "c"], None),
        (["a", "c"], "c"),
        (["a", "...", "c", "d"], "d"),
        (["a", "..."], None),
        (["a...", "b"], None),
    ],
)
def test_comparison(shown, line):
    assert missing(shown, ["a", "b", "c"]) == line


def prepared(folder):
    model = folder / "Qwen2.5-7B-Instruct-AWQ"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"quantization_config": AWQ}))


CASES = [
    pytest.param(page, start, marks=[pytest.mark.long] if page in SLOW else [], id=page)
    for page, starts in SHOWN.items()
    for start in starts
]


@pytest.mark.parametrize(("page", "start"), CASES)
def test_pages_show_what_is_printed(page, start, tmp_path):
    prepared(tmp_path)
    [(command, shown)] = [
        (command, lines)
        for command, lines in examples(PAGES / f"{page}.md")
        if command.startswith(start) and lines
    ][:1]
    words = shlex.split(command)
    variables = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))
    arguments = words[words.index("cuda-morph") + 1 :]
    done = subprocess.run(
        [sys.executable, "-m", "cuda_morph", *arguments],
        cwd=tmp_path,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert missing(shown, done.stdout.splitlines()) is None, done.stdout + done.stderr
