"""The one option of the test suites that needs a machine: ``--run-hardware``."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option."""
    parser.addoption(
        "--run-hardware",
        action="store_true",
        help="Also run what needs a real accelerator; plugins without one are skipped.",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips tests that need a card, unless they were asked for."""
    if config.getoption("--run-hardware"):
        return
    skip = pytest.mark.skip(reason="needs a real accelerator: --run-hardware")
    for item in items:
        if "hardware" in item.keywords:
            item.add_marker(skip)
