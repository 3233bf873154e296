"""Fixtures of core's tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fake_distributions import FakeSite

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def fake_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSite]:
    """An empty folder on the path for plugins that are not really installed."""
    site = FakeSite(tmp_path, monkeypatch)
    yield site
    site.close()
