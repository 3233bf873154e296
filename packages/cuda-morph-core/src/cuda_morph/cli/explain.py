"""``cuda-morph explain``: one CUDA name, rule, error code, capability or check, everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cuda_morph.cli import output

if TYPE_CHECKING:
    from cuda_morph.explanation import Explanation


@click.command()
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@output.format_option
def explain(topics: tuple[str, ...], output_format: str) -> int:
    r"""Explain TOPICs: names of torch.cuda, rules, error codes, capabilities, checks.

    A CUDA name is shown with its answer on every installed backend.

    Exit code 1 when a topic is unknown.

    \b
    Examples:
      cuda-morph explain torch.cuda.memory_stats
      cuda-morph explain CM204
      cuda-morph explain CM-E07
      cuda-morph explain CM-MEM-003
      cuda-morph explain compile.triton
    """
    from cuda_morph.explanation import close_topics, explain_topic

    answers = {topic: explain_topic(topic) for topic in topics}
    if output_format == "json":
        output.write_json(
            {topic: answer.as_dict() if answer else None for topic, answer in answers.items()}
        )
    else:
        for answer in answers.values():
            if answer is not None:
                _write(answer)
    unknown = [topic for topic, answer in answers.items() if answer is None]
    for topic in unknown:
        click.echo(f"{output.one_line(topic)}: nothing is known under this name.", err=True)
        close = close_topics(topic)
        if close:
            click.echo(f"  next step: did you mean {', '.join(close)}?", err=True)
    return int(bool(unknown))


def _write(answer: Explanation) -> None:
    click.secho(answer.title, bold=True)
    output.write_pairs((f"  {label}", text) for label, text in answer.facts)
    if answer.rows:
        click.echo()
        output.write_table(answer.columns, answer.rows)
    click.echo()
