"""Writes the pages of the rules: ``python -m cuda_morph.scan.rule_pages docs/rules``."""

from __future__ import annotations

import sys
from pathlib import Path

from cuda_morph.scan.rules import GROUPS, RULES, Rule

_NOTE = (
    "<!-- Written by `python -m cuda_morph.scan.rule_pages` from rules.json; a test compares. -->"
)

_TARGET = "With `--target` the records of that backend's plugin decide where they say more."


def rule_page(rule: Rule) -> str:
    """Returns the Markdown page of one rule."""
    language = "python" if rule.group in {"CM1", "CM2", "CM3", "CM4"} else "text"
    return "\n".join(
        [
            f"# {rule.code} {rule.name}",
            "",
            _NOTE,
            "",
            f"{rule.summary} *{GROUPS[rule.group]}.*",
            "",
            f"```{language}",
            rule.example,
            "```",
            "",
            f"**Why it matters.** {rule.why}",
            "",
            f"**What to do.** {rule.advice}",
            "",
            f"**Verdict.** {rule.verdict.value}, effort: {rule.effort.value}. {_TARGET}",
            "",
            f"Leave one line out with `# noqa: {rule.code}`, the rule with `--ignore {rule.code}`.",
            "",
        ]
    )


def index_page() -> str:
    """Returns the Markdown page that lists all rules."""
    lines = ["# Rules of cuda-morph check", "", _NOTE, ""]
    for group, title in GROUPS.items():
        lines += [
            f"## {title}",
            "",
            "| rule | name | what it finds | verdict |",
            "|---|---|---|---|",
        ]
        lines += [_index_row(rule) for rule in RULES.values() if rule.group == group]
        lines.append("")
    return "\n".join(lines)


def _index_row(rule: Rule) -> str:
    link = f"[{rule.code}]({rule.code}.md)"
    return f"| {link} | {rule.name} | {rule.summary} | {rule.verdict.value} |"


def pages() -> dict[str, str]:
    """Returns every page by file name."""
    return {"README.md": index_page()} | {f"{c}.md": rule_page(rule) for c, rule in RULES.items()}


def main(folder: Path) -> None:
    """Writes all pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
