"""What the documents say about the repository is so."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\(([^)\s#]+)")
# Put together here, so that this file does not hold what it forbids.
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:work|root|home|Users)" + r"/\w")


def repository_files():
    """Returns every file that is, or would be, committed."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


FILES = repository_files()
DOCUMENTS = [path for path in FILES if path.suffix == ".md"]


def sessions():
    tree = ast.parse((ROOT / "noxfile.py").read_text())
    for node in tree.body:
        for decorator in getattr(node, "decorator_list", []):
            text = ast.unparse(decorator)
            if text.startswith("nox.session"):
                named = re.search(r"name='([^']+)'", text)
                yield named[1] if named else node.name


@pytest.mark.parametrize("session", ["demo", "tests"])
def test_readme_names_the_two_commands(session):
    assert f"\npip install nox && nox -s {session}\n" in (ROOT / "README.md").read_text()


def test_every_session_that_a_document_names_exists():
    named = {
        name
        for path in DOCUMENTS
        for match in re.findall(r"\bnox -s ((?:[a-z][a-z-]* ?)+)", path.read_text())
        for name in match.split()
        if not re.search(r"nox -s .*`", match)
    }
    known = set(sessions())
    assert {"demo", "tests", "lint", "types", "bench", "build", "conformance"} <= known
    assert named <= known


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_resolve(path):
    targets = [link for link in LINK.findall(path.read_text()) if "://" not in link]
    missing = [target for target in targets if not (path.parent / target).exists()]
    assert missing == []


def test_no_path_of_a_machine_is_in_the_tree():
    found = []
    for path in FILES:
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in MACHINE_PATH.finditer(text)]
    assert found == []


def linked_from(page):
    links = LINK.findall(page.read_text())
    return {(page.parent / link).resolve() for link in links if "://" not in link}


def test_the_index_names_every_document():
    folder = ROOT / "docs"
    listed = linked_from(folder / "index.md") | linked_from(folder / "rules" / "README.md")
    pages = {
        path for path in DOCUMENTS if folder in path.parents and path.parent.name != "decisions"
    }
    assert pages - {folder / "index.md"} <= listed


def test_every_decision_is_listed():
    folder = ROOT / "docs" / "decisions"
    listed = (folder / "README.md").read_text()
    unlisted = [path.name for path in folder.glob("[0-9]*.md") if path.name not in listed]
    assert unlisted == []
