"""The `check` decorator, and the registry that it fills."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cuda_morph_conformance.vocabulary import AREAS, VIEWS, Level

if TYPE_CHECKING:
    from cuda_morph_conformance.subject import Subject

_ID = re.compile(r"CM-([A-Z]{2,5})-(\d{3})")

CheckFunction = Callable[["Subject"], None]


class CheckFailed(Exception):  # noqa: N818 - an outcome, not an error of the suite
    """The sentence of a check does not hold; the text says what was seen."""


class NotRun(Exception):  # noqa: N818 - an outcome, not an error of the suite
    """A check could not be made here; the text says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One sentence that every plugin must satisfy, and the function that proves it."""

    id: str
    level: Level
    must: str
    """The sentence, from the first paragraph of the function's docstring."""
    fix: str
    """What a plugin author does when it fails, from the ``Fix:`` paragraph."""
    requires: tuple[str, ...]
    """Capability ids that the check is about; empty: it concerns every plugin."""
    since: str
    """Checklist version that introduced the check."""
    devices: int
    """Devices the check needs; 0 for none."""
    fresh: bool
    """True: starts in a process that has done nothing yet."""
    views: tuple[str, ...]
    """The views it is made in, one result each; empty: it is made once, and the view is native."""
    run: CheckFunction

    @property
    def area(self) -> str:
        """The middle part of the id, a key of `AREAS`."""
        return self.id.split("-")[1]

    @property
    def active(self) -> bool:
        """True when the plugin is activated before the check is called."""
        return self.level is not Level.LOADS and not self.fresh

    @property
    def order(self) -> tuple[int, int, str]:
        """Where it stands in the checklist: by level, then area, then number."""
        return (self.level.rank, list(AREAS).index(self.area), self.id)


CHECKS: dict[str, Check] = {}
"""Every registered check by id, in the order of definition."""


def check(
    id: str,  # noqa: A002 - the word that the checklist uses
    *,
    level: Level,
    requires: tuple[str, ...] = (),
    since: str,
    devices: int = 0,
    fresh: bool = False,
    views: tuple[str, ...] | None = None,
) -> Callable[[CheckFunction], CheckFunction]:
    """Register the decorated function as a check.

    The function takes the `Subject` and returns nothing; it raises `CheckFailed` (see `require`)
    or `NotRun`. Its docstring holds the sentence with the word MUST, and a paragraph ``Fix:``.

    A check above the level ``loads`` is called once per view while the plugin is active in
    ``subject.view``, together with others in one process: it leaves global state as it found it.
    A ``fresh`` one has a process of its own, where nothing is active and torch is not imported;
    it calls ``subject.activate()`` itself.

    Args:
        id: Stable name, such as ``CM-LOAD-001``; never reused.
        level: The level that the check belongs to.
        requires: Capability ids that the check is about.
        since: Checklist version that introduced it.
        devices: How many devices it needs; with fewer it is not run.
        fresh: Whether it needs a process of its own.
        views: The views to make it in, ``()`` for one that depends on no view. By default both,
            and for the level ``loads`` none.

    Returns:
        The decorator, which gives the function back unchanged.

    Raises:
        ValueError: The id is malformed or taken, or the docstring lacks the sentence or the fix.

    Example:
        @check("CM-LOAD-004", level=Level.LOADS, since="0.1")
        def name_matches(subject):
            '''The backend's name MUST equal the name of the entry point.

            Fix: return ``Backend(name=...)`` with the name used in pyproject.toml.
            '''
            require(subject.backend().name == subject.name, "they differ")
    """

    def register(function: CheckFunction) -> CheckFunction:
        must, fix = _sentences(id, function)
        named = _ID.fullmatch(id)
        if not named:
            raise ValueError(f"{id!r} is no check id; expected the form CM-LOAD-001")
        if named[1] not in AREAS:
            raise ValueError(f"{id}: {named[1]} is no area; there are {', '.join(AREAS)}")
        if id in CHECKS:
            raise ValueError(f"{id} is already the id of {CHECKS[id].run.__name__}")
        CHECKS[id] = Check(
            id=id,
            level=level,
            must=must,
            fix=fix,
            requires=requires,
            since=since,
            devices=devices,
            fresh=fresh,
            views=_views(level, views),
            run=function,
        )
        return function

    return register


def _views(level: Level, views: tuple[str, ...] | None) -> tuple[str, ...]:
    if views is None:
        return () if level is Level.LOADS else VIEWS
    if not set(views) <= set(VIEWS):
        raise ValueError(f"{views!r}: the views are {', '.join(VIEWS)}")
    return views


def require(condition: object, message: str) -> None:
    """Fail the running check unless the condition holds.

    Args:
        condition: What must be true.
        message: What was seen instead.

    Raises:
        CheckFailed: The condition is false.
    """
    if not condition:
        raise CheckFailed(message)


def _sentences(check_id: str, function: CheckFunction) -> tuple[str, str]:
    paragraphs = [" ".join(part.split()) for part in (inspect.getdoc(function) or "").split("\n\n")]
    must = paragraphs[0]
    fixes = [part.removeprefix("Fix:").strip() for part in paragraphs if part.startswith("Fix:")]
    if "MUST" not in must or not must.endswith("."):
        raise ValueError(f"{check_id}: the docstring must open with one sentence that says MUST")
    if len(fixes) != 1 or not fixes[0]:
        raise ValueError(f"{check_id}: the docstring must have one paragraph that begins 'Fix:'")
    return must, fixes[0]
