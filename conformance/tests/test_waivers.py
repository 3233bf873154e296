from __future__ import annotations

import datetime as dt

import pytest

from cuda_morph.errors import SettingError
from cuda_morph_conformance.waivers import Waiver, find_waiver, read_waivers

GOOD = """
[[waiver]]
check = "CM-MEM-003"
plugin = "mychip"
view = "cuda"
versions = ">=1.0,<2"
reason = "The driver counts freed blocks late."
issue = "https://example.org/issues/7"
expires = 2027-03-31
"""
DAY = dt.date(2027, 3, 31)


@pytest.fixture
def waiver(tmp_path) -> Waiver:
    path = tmp_path / "waivers.toml"
    path.write_text(GOOD)
    [read] = read_waivers(path)
    return read


def find(waiver, check="CM-MEM-003", view="cuda", plugin="mychip", version="1.4", today=DAY):
    return find_waiver([waiver], check, view, plugin=plugin, version=version, today=today)


def test_it_holds_for_what_it_names_until_its_last_day(waiver):
    assert find(waiver) is waiver
    assert find(waiver, today=DAY + dt.timedelta(days=1)) is None


@pytest.mark.parametrize(
    "other",
    [{"check": "CM-MEM-004"}, {"view": "native"}, {"plugin": "rival"}, {"version": "2.0"}],
)
def test_it_holds_for_nothing_else(waiver, other):
    assert find(waiver, **other) is None


@pytest.mark.parametrize(
    ("old", "new", "mention"),
    [
        ('reason = "The driver counts freed blocks late."', "", "reason is not given"),
        ("expires = 2027-03-31", "", "expires is not given"),
        ("2027-03-31", '"soon"', "isoformat"),
        ('"cuda"', '"both"', "view is 'both'"),
        ("https://", "see ", "no address"),
        (">=1.0,<2", "new", "Invalid specifier"),
        ("plugin =", "plugni =", "plugni is no field"),
        ("[[waiver]]", "[[waiver]", "cannot be read"),
        ("[[waiver]]", "[[wavier]]", "more than tables"),
    ],
)
def test_what_is_not_in_order_is_refused(old, new, mention, tmp_path):
    path = tmp_path / "waivers.toml"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(SettingError, match=mention):
        read_waivers(path)


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(SettingError, match="cannot be read"):
        read_waivers(tmp_path / "none.toml")
