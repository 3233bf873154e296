"""Fixtures of core's tests."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fake_distributions import FakeSite

if TYPE_CHECKING:
    from collections.abc import Iterator


collect_ignore = ["scan_corpus"]
"""Some of these samples are named like tests, because they show what check finds in tests."""


@pytest.fixture
def fake_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSite]:
    """An empty folder on the path for plugins that are not really installed."""
    site = FakeSite(tmp_path, monkeypatch)
    yield site
    site.close()


def pytest_configure():
    """Lets Ctrl-C reach the programs under test, also where a background job ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
