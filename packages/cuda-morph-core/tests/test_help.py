"""The command line explains itself: sections, examples, and completion by the shell."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cuda_morph.cli.group import COMMANDS, SECTIONS, cli

DOCS = Path(__file__).parents[3] / "docs"


def shown(*arguments):
    result = CliRunner().invoke(
        cli, [*arguments, "--help"], terminal_width=80, prog_name="cuda-morph"
    )
    assert result.exit_code == 0, result.output
    return result.output


def complete(*words):
    """Asks as bash does when the tab key is pressed after the last word."""
    program = (
        "import sys; sys.argv[0] = 'cuda-morph'; from cuda_morph.cli.entry import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            "_CUDA_MORPH_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(("cuda-morph", *words)),
            "COMP_CWORD": str(len(words)),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_every_command_is_in_one_section():
    named = [name for names in SECTIONS.values() for name in names]
    assert sorted(named) == sorted(COMMANDS)
    overview = shown()
    at = [overview.index(f"\n{title}:\n") for title in SECTIONS]
    assert at == sorted(at)
    for name, (_, text) in COMMANDS.items():
        assert f"\n  {name} " in overview
        assert text in overview  # in one line: none is wrapped
    assert "\n    cuda-morph run train.py --epochs 3 " in overview
    assert max(len(line) for line in overview.splitlines()) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_stand_in_lines_of_their_own(name):
    text = shown(name)
    assert "\\b" not in text
    command = cli.get_command(click.Context(cli), name)
    for inner in ([], *([part] for part in getattr(command, "commands", {}))):
        assert "\\b" not in shown(name, *inner)
    examples = re.findall(r"^    (?:  )?(?:[A-Z_]+=\w+ )?(cuda-morph .*)", text, flags=re.MULTILINE)
    assert "Examples:" in text
    assert examples
    assert all(line.startswith(f"cuda-morph {name}") for line in examples)


def accepted(line):
    """Whether the command line takes the words of an example; nothing is run."""
    words = shlex.split(line.partition(" < ")[0], comments=True)[1:]
    context, command = click.Context(cli, info_name="cuda-morph"), cli
    while isinstance(command, click.Group):
        command = command.get_command(context, words.pop(0))
        assert command is not None, line
    command.make_context(command.name, words, parent=context)


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_of_the_help_are_accepted(name):
    command = cli.get_command(click.Context(cli), name)
    groups = [name, *(f"{name} {part}" for part in getattr(command, "commands", {}))]
    for words in groups:
        text = shown(*words.split()).partition("Examples:")[2].partition("Options:")[0]
        for line in re.findall(r"(cuda-morph .*)", text):
            accepted(line)


def test_the_readme_shows_every_command_in_one_line_each():
    readme = (DOCS.parent / "README.md").read_text()
    table = readme.partition("## The commands")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| `(cuda-morph [^`]+)` \|", table, flags=re.MULTILINE)
    for line in lines:
        accepted(line)
    first = [line.split()[1] for line in lines]
    assert sorted(set(first)) == sorted(first)
    assert set(COMMANDS) - set(first) == {"info"}
    assert "`cuda-morph info`" in table


def test_a_raw_paragraph_of_examples_is_kept():
    assert "\n    cuda-morph explain CM204\n" in shown("explain")


def test_the_shell_completes_commands_options_and_choices():
    assert complete("p") == ["plugins", "port"]
    assert complete("scaffold", "x", "--ki") == ["--kind"]
    assert complete("scaffold", "x", "--kind", "re") == ["reduction"]
    assert complete("port", "--und") == ["--undo"]
    assert complete("nothing-begins-so") == []


def test_the_shell_completes_names_that_are_known_here():
    for words in (["run", "--backend"], ["doctor", "--plugin"], ["bench", "ops", "--backend"]):
        assert "cpu" in complete(*words, "c")
    assert complete("explain", "torch.cuda.memory_st") == [
        "torch.cuda.memory_stats",
        "torch.cuda.memory_stats_as_nested_dict",
    ]
    assert complete("explain", "CM-E0")[:2] == ["CM-E01", "CM-E02"]


def test_bash_completes_once_it_has_read_the_line_of_the_page(tmp_path):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    command = tmp_path / "cuda-morph"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cuda_morph "$@"\n')
    command.chmod(0o755)
    program = """
        eval "$(_CUDA_MORPH_COMPLETE=bash_source cuda-morph)"
        COMP_WORDS=(cuda-morph scaffold x --kind "") COMP_CWORD=4
        $(complete -p cuda-morph | sed 's/.*-F \\([^ ]*\\).*/\\1/') cuda-morph
        echo "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        [bash, "--norc", "-c", program],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["elementwise", "reduction", "matmul"], done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_page_shows_the_line_of_each_shell(shell):
    assert (
        f"_CUDA_MORPH_COMPLETE={shell}_source cuda-morph"
        in (DOCS / "user-guide" / "command-line.md").read_text()
    )


def test_the_page_shows_the_overview_as_it_is():
    assert shown().strip() in (DOCS / "user-guide" / "command-line.md").read_text()
