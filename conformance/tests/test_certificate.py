from __future__ import annotations

import datetime as dt
import json
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft202012Validator
from made_certificate import make, make_report

from cuda_morph_conformance.certificate import read_certificate, schema, write_certificate
from cuda_morph_conformance.facts import Facts, decide_evidence
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.report_text import render_report
from cuda_morph_conformance.vocabulary import AREAS, Evidence, Level, Outcome, Seen
from cuda_morph_conformance.waivers import Waiver

FAILING = next(check for check in CHECKS.values() if check.level is Level.RUNS)
WAIVER = Waiver(
    check=FAILING.id,
    plugin="mychip",
    reason="A known <problem>.",
    issue="https://example.org/1",
    expires="2099-01-01",
)


@pytest.fixture(scope="module")
def failed():
    return make(seen={FAILING.id: Seen.FAILED})


def test_it_is_what_the_schema_says(failed):
    Draft202012Validator.check_schema(schema())
    for certificate in (failed, make(), make(waivers=(WAIVER,))):
        Draft202012Validator(schema()).validate(json.loads(json.dumps(certificate)))


def test_everything_passed_reaches_the_highest_level_that_has_checks():
    levels = [level for level in Level if any(c.level is level for c in CHECKS.values())]
    assert make()["level"] == levels[-1].value


def test_one_failure_costs_the_level_and_is_listed(failed):
    assert failed["level"] == "loads"
    assert failed["counts"]["failed"] == len(FAILING.views or (None,))


def test_a_declined_ability_costs_the_level_only_where_it_is_mandatory():
    optional = next(
        check
        for check in CHECKS.values()
        if check.level is Level.RUNS and check.requires == ("device.utilization",)
    )
    report = make_report(seen={optional.id: Seen.FAILED}, claims={"device.utilization": "never"})
    assert report.count(Outcome.UNSUPPORTED) == len(optional.views)
    assert report.level is not Level.LOADS
    counted = next(c for c in CHECKS.values() if c.requires == ("device.count",))
    report = make_report(seen={counted.id: Seen.FAILED}, claims={"device.count": "never"})
    assert report.count(Outcome.UNSUPPORTED) == len(counted.views)
    assert report.level is Level.LOADS


def test_a_waiver_lets_a_failure_pass_and_is_shown_first():
    report = make_report(seen={FAILING.id: Seen.FAILED}, waivers=(WAIVER,))
    assert report.count(Outcome.WAIVED) == len(FAILING.views)
    assert report.clean
    assert report.level is not Level.LOADS
    assert render_report(report).splitlines()[2].startswith(f"  waived   {FAILING.id}")


def test_an_expired_waiver_waives_nothing():
    late = dt.date(2099, 1, 2)
    report = make_report(seen={FAILING.id: Seen.FAILED}, waivers=(WAIVER,), today=late)
    assert report.count(Outcome.WAIVED) == 0
    assert report.level is Level.LOADS


HARD = {"simulated": False, "details": {"driver": "1", "sdk": "2"}, "devices": ("A",)}


@pytest.mark.parametrize(
    ("change", "used", "expected"),
    [
        ({}, True, Evidence.HARDWARE),
        ({}, False, Evidence.NONE),
        ({"devices": ()}, True, Evidence.NONE),
        ({"details": {"sdk": "2"}}, True, Evidence.NONE),
        ({"details": {"driver": "1"}}, True, Evidence.NONE),
        ({"simulated": True}, True, Evidence.SIMULATED),
        (
            {"details": {"runtime": "simulated"}, "adapter": {"torch-x": "1"}, "dist": "p"},
            True,
            Evidence.RUNTIME_SIMULATED,
        ),
        ({"simulated": True, "details": {"runtime": "simulated"}}, True, Evidence.SIMULATED),
    ],
)
def test_evidence_follows_from_recorded_facts(change, used, expected):
    assert decide_evidence(Facts(plugin="p", **{**HARD, **change}), used=used) is expected


def test_the_files_hold_the_same(failed, tmp_path):
    paths = write_certificate(failed, tmp_path / "new")
    assert [path.name for path in paths] == ["certificate.json", "junit.xml", "report.html"]
    assert read_certificate(tmp_path / "new") == json.loads(json.dumps(failed))
    root = ET.parse(paths[1]).getroot()
    assert sum(int(suite.get("tests")) for suite in root) == len(failed["results"])
    assert sum(int(suite.get("failures")) for suite in root) == failed["counts"]["failed"]
    assert {suite.get("name") for suite in root} <= set(AREAS.values())
    [first, *_] = root.iter("failure")
    assert FAILING.fix in first.text


class Page(HTMLParser):
    VOID = {"meta", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.outside, self.headings = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name in {"src", "href"} and not value.startswith("https://example.org"):
                self.outside.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "h2":
            self.headings.append(data.strip())
        if "style" not in self.open:
            self.text.append(data)


def test_the_page_stands_alone_and_shows_failures_first(failed, tmp_path):
    text = write_certificate(failed, tmp_path)[2].read_text()
    page = Page(text)
    assert not page.open
    assert not page.outside
    assert page.headings[0] == "To do"
    shown = "".join(page.text)
    for expected in (
        "MyChip <1>",
        FAILING.fix.replace("``", ""),
        "seen <b>something</b>",
        "simulated device",
    ):
        assert expected in shown
    assert "prefers-color-scheme: dark" in text


def test_the_page_lists_waivers_before_all_else(tmp_path):
    certificate = make(seen={FAILING.id: Seen.FAILED}, waivers=(WAIVER,))
    page = Page(write_certificate(certificate, tmp_path)[2].read_text())
    assert page.headings[0] == "Waivers"
    assert "To do" not in page.headings
