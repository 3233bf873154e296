"""Every rule on labelled files: what must be found and what must not.

A line that ends in ``>> CM101, CM201`` has exactly these findings; after ``#: next CM714`` the
following line has them. Every other line has none. Files called ``no_...`` have none of the rule
of their folder: precision counts as much as recall.
"""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from cuda_morph.scan.file_scan import scan_file
from cuda_morph.scan.rules import RULES
from cuda_morph.scan.source_files import kind_of

CORPUS = Path(__file__).with_name("scan_corpus")
FILES = sorted(path for path in CORPUS.rglob("*") if path.is_file())
MARK = re.compile(r">> (CM\d+(?:, CM\d+)*)")
NEXT = re.compile(r"#: next (CM\d+(?:, CM\d+)*)")
NOT_IN_FILES = {"CM902", "CM903", "CM904"}
"""Rules about files that cannot be kept in a repository; tested with files made on the spot."""


def marks_of(lines):
    for number, line in enumerate(lines, 1):
        for pattern, shift in ((MARK, 0), (NEXT, 1)):
            match = pattern.search(line)
            if match:
                yield from ((number + shift, code) for code in match[1].split(", "))


def expected(path):
    if path.suffix != ".ipynb":
        return Counter((None, *mark) for mark in marks_of(path.read_text().split("\n")))
    cells = json.loads(path.read_text())["cells"]
    return Counter(
        (number, *mark)
        for number, cell in enumerate(cells, 1)
        for mark in marks_of("".join(cell["source"]).split("\n"))
    )


def found(path):
    result = scan_file(path, kind_of(path))
    return Counter((f.place.cell, f.place.line, f.rule) for f in result.findings)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CORPUS)))
def test_findings_are_exactly_the_marked_ones(path):
    assert found(path) == expected(path)


def test_the_set_is_large_enough():
    assert len(FILES) >= 150


@pytest.mark.parametrize("code", sorted(set(RULES) - NOT_IN_FILES))
def test_every_rule_has_files_with_and_without_it(code):
    own = [path for path in FILES if path.relative_to(CORPUS).parts[0] == code]
    having = [path for path in own if any(rule == code for _, _, rule in expected(path))]
    assert having, f"no file has {code}"
    assert len(own) > len(having), f"no file of {code} is without it"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CORPUS)))
def test_places_are_inside_the_file(path):
    lines = path.read_text().split("\n")
    for finding in scan_file(path, kind_of(path)).findings:
        place = finding.place
        if place.cell is None:
            assert 1 <= place.line <= len(lines)
            assert 1 <= place.column <= len(lines[place.line - 1]) + 1
