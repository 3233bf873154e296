"""Level ``loads``: what the plugin claims is said in words that others understand."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement

from cuda_morph.capabilities import CAPABILITIES
from cuda_morph.records import ErrorCode, ErrorRule, Treatment
from cuda_morph_conformance.registry import CheckFailed, check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cuda_morph_conformance.subject import Subject


@check("CM-LOAD-040", level=Level.LOADS, since="0.1")
def capabilities_are_known(subject: Subject) -> None:
    """Each capability claim MUST name an id of core's closed list, and each id at most once.

    Fix: take the ids from ``cuda_morph.capabilities``; an ability without an id cannot be claimed.
    """
    ids = [claim.id for claim in _answer(subject, "cuda_morph_capabilities")]
    unknown = sorted(set(ids) - set(CAPABILITIES))
    require(not unknown, f"unknown ids: {', '.join(unknown)}")
    require(not _repeated(ids), f"claimed twice: {', '.join(_repeated(ids))}")


@check("CM-LOAD-041", level=Level.LOADS, since="0.1")
def api_mappings_are_clear(subject: Subject) -> None:
    """Each API mapping MUST concern one name below torch, once, and a refusal MUST give a reason.

    Fix: use the full name, such as ``torch.cuda.jiterator``, and fill ``note`` for refusals.
    """
    mappings = list(_answer(subject, "cuda_morph_api_mappings"))
    names = [mapping.name for mapping in mappings]
    foreign = sorted({name for name in names if not name.startswith("torch.")})
    require(not foreign, f"not below torch: {', '.join(foreign)}")
    require(not _repeated(names), f"listed twice: {', '.join(_repeated(names))}")
    silent = sorted(
        mapping.name
        for mapping in mappings
        if mapping.treatment is Treatment.REFUSE and not mapping.note.strip()
    )
    require(not silent, f"refused without a note: {', '.join(silent)}")


@check("CM-LOAD-042", level=Level.LOADS, since="0.1")
def error_table_is_usable(subject: Subject) -> None:
    """Each error code MUST be listed once in its family and mean one thing there.

    Second names of a number are entries of their own, with the same class. Each entry MUST have a
    meaning, and each pattern MUST compile.

    Fix: correct the rows named above; libraries that number on their own need a ``family`` each.
    """
    rows = list(_answer(subject, "cuda_morph_error_codes"))
    codes = [row for row in rows if isinstance(row, ErrorCode)]
    repeated = _repeated(f"{row.family} {row.code} {row.name}".strip() for row in codes)
    require(not repeated, f"listed twice: {', '.join(repeated)}")
    classes = {(row.family, row.code, row.semantic) for row in codes}
    unclear = _repeated(f"{family} {code}".strip() for family, code, _ in classes)
    require(not unclear, f"of several classes: {', '.join(unclear)}")
    for row in rows:
        if isinstance(row, ErrorCode):
            require(row.meaning.strip(), f"{row.code} has no meaning")
        elif isinstance(row, ErrorRule):
            try:
                re.compile(row.pattern)
            except re.error as error:
                raise CheckFailed(f"{row.pattern!r}: {error}") from error


@check("CM-LOAD-043", level=Level.LOADS, since="0.1")
def requirements_can_be_read(subject: Subject) -> None:
    """Each entry of Backend.runtime_requires MUST be a requirement that pip understands.

    Fix: write ``"torch-mychip>=1.0"``: name, then version range.
    """
    line = ""
    try:
        for line in subject.backend().runtime_requires:
            Requirement(line)
    except InvalidRequirement as error:
        raise CheckFailed(f"{line!r}: {error}") from error


@check("CM-LOAD-044", level=Level.LOADS, since="0.1")
def collectives_agree(subject: Subject) -> None:
    """Backend.collective_backend MUST be the name of a collective backend where any is listed.

    Fix: use the name that ``torch.distributed.init_process_group`` takes, in both places.
    """
    if not subject.implements("cuda_morph_collectives"):
        return
    try:
        names = [item.name for item in _answer(subject, "cuda_morph_collectives")]
    except Exception:
        # This hook may need the adapter, which is not everywhere.
        subject.need_device()
        raise
    own = subject.backend().collective_backend
    require(not names or own in names, f"Backend says {own!r}, the hook {names}")


def _answer(subject: Subject, hook: str) -> Iterable[Any]:
    return subject.call(hook) if subject.implements(hook) else ()


def _repeated(names: Iterable[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)
