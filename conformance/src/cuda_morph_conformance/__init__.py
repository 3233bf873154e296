"""The conformance suite of cuda-morph: the checks, and the machinery that runs them on a plugin.

The suite owns its checks; a plugin only declares what it supports. ``cuda-morph-conformance list``
prints the checklist, ``cuda-morph-conformance run --plugin NAME`` goes through it.
"""

from cuda_morph_conformance.registry import Check, CheckFailed, NotRun, check, require
from cuda_morph_conformance.subject import Subject
from cuda_morph_conformance.vocabulary import CHECKLIST, Evidence, Level, Outcome

__all__ = [
    "CHECKLIST",
    "Check",
    "CheckFailed",
    "Evidence",
    "Level",
    "NotRun",
    "Outcome",
    "Subject",
    "check",
    "require",
]
