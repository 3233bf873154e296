"""A certificate over the whole checklist, made from results that are written down here."""

from __future__ import annotations

from cuda_morph_conformance.certificate import content_digest, make_certificate
from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.facts import Facts, describe_environment
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.result import Report, Result
from cuda_morph_conformance.runner import all_keys
from cuda_morph_conformance.vocabulary import Seen

load_all()
CLAIM = {"support": "full", "note": "a note with <brackets> & 'quotes'", "since": ""}
REQUIRED = {name for check in CHECKS.values() for name in check.requires}


def make_report(seen=None, claims=None, facts=None, **fields):
    """A report in which everything passed but what `seen` says by check id."""
    results = tuple(
        Result(
            id=name,
            view=view,
            seen=(seen or {}).get(name, Seen.PASSED),
            message="" if name not in (seen or {}) else "seen <b>something</b> \x00 else",
            seconds=0.25,
        )
        for name, view in all_keys()
    )
    said = {name: {**CLAIM, "support": (claims or {}).get(name, "full")} for name in REQUIRED}
    who = {
        "plugin": "mychip",
        "dist": "cuda-morph-mychip",
        "version": "1.0",
        "backend": {"name": "mychip", "display_name": "MyChip <1>", "vendor": "MyChip Inc."},
        "activated": "sim:mychip",
        "simulated": True,
        "devices": ("MyChip A", "MyChip A"),
        **(facts or {}),
    }
    return Report(
        facts=Facts(claims=said, **who),
        results=results,
        complete=True,
        environment=describe_environment(),
        seconds=12.5,
        **fields,
    )


def make(**fields):
    return make_certificate(make_report(**fields))


def sealed(certificate):
    """The certificate with a digest that fits, as a careful forger would leave it."""
    return {**certificate, "sha256": content_digest(certificate)}
