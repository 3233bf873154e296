"""What is known about one topic: a CUDA name, a rule, an error code, a capability, a check."""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING, Any

from cuda_morph import api_table
from cuda_morph.capabilities import CAPABILITIES
from cuda_morph.errors import CATALOGUE
from cuda_morph.frozen_record import frozen_record
from cuda_morph.plugins import collect, get_plugin, plugin_names
from cuda_morph.records import Support
from cuda_morph.scan.rules import GROUPS, RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cuda_morph.api_table import ApiRow
    from cuda_morph.records import ApiMapping, CapabilityClaim

_BACKENDS = ("backend", "treatment", "support", "answered by", "note")
_CLAIMS = ("backend", "support", "since", "note")


@frozen_record
class Explanation:
    """One topic explained."""

    kind: str
    """``cuda name``, ``rule``, ``error``, ``capability`` or ``check``."""
    title: str
    facts: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Returns the explanation in a form ready for JSON."""
        return {
            "kind": self.kind,
            "title": self.title,
            **dict(self.facts),
            "backends": [dict(zip(self.columns, row, strict=True)) for row in self.rows],
        }


def explain_topic(topic: str) -> Explanation | None:
    """Looks a topic up.

    Args:
        topic: A name such as ``torch.cuda.memory_stats`` or ``cuda.memory_stats``, a rule such as
            ``CM204``, an error such as ``CM-E07``, a capability such as ``stream.priority``, or a
            check such as ``CM-MEM-003``.

    Returns:
        The explanation, or ``None`` when nothing has the name.
    """
    text = topic.strip()
    code = text.upper()
    if code in RULES:
        return _rule(code)
    kind = next((kind for kind in CATALOGUE if kind.code == code), None)
    if kind is not None:
        return Explanation(
            kind="error",
            title=f"{kind.code} {kind.title}",
            facts=(("raised as", _class_of(kind.code)),),
        )
    if code.startswith("CM-"):
        return _check(code)
    if text in CAPABILITIES:
        return _capability(text)
    return _cuda_name(text)


def topics() -> list[str]:
    """Returns every topic under its full name."""
    codes = (kind.code for kind in CATALOGUE)
    return [*api_table.by_name(), *RULES, *CAPABILITIES, *codes, *_checks()]


def close_topics(topic: str) -> list[str]:
    """Returns topics that look like the given one, best first."""
    names = list(api_table.by_name())
    found = difflib.get_close_matches(topic, topics(), n=3, cutoff=0.7)
    last = topic.rpartition(".")[2]
    ends = [name for name in names if last and name.endswith(f".{last}")]
    return list(dict.fromkeys([*ends[:3], *found]))[:3]


def _rule(code: str) -> Explanation:
    rule = RULES[code]
    return Explanation(
        kind="rule",
        title=f"{code} {rule.name}: {rule.summary}",
        facts=(
            ("group", GROUPS[rule.group]),
            ("why", rule.why),
            ("advice", rule.advice),
            ("verdict", f"{rule.verdict.value}, effort {rule.effort.value}"),
            ("example", rule.example),
        ),
    )


def _class_of(code: str) -> str:
    errors = importlib.import_module("cuda_morph.errors")
    found = [
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and vars(value).get("code") == code and name != "MorphError"
    ]
    return ", ".join(found) or "MorphError"


def _checks() -> dict[str, Any]:
    """The checklist, where the conformance suite is installed: core does not depend on it."""
    try:
        checks = importlib.import_module("cuda_morph_conformance.checks")
        registry = importlib.import_module("cuda_morph_conformance.registry")
        checks.load_all()
    except ImportError:
        return {}
    found: dict[str, Any] = registry.CHECKS
    return found


def _check(code: str) -> Explanation | None:
    check = _checks().get(code)
    if check is None:
        return None
    facts = [
        ("level", check.level.value),
        ("must", check.must),
        ("fix", check.fix),
        ("requires", ", ".join(check.requires) or "nothing"),
        ("devices", str(check.devices)),
        ("since", f"checklist {check.since}"),
    ]
    return Explanation(kind="check", title=code, facts=tuple(facts))


def _capability(name: str) -> Explanation:
    checks = [id_ for id_, check in _checks().items() if name in check.requires]
    rows = []
    for plugin, claims in _by_plugin("cuda_morph_capabilities", torch_version=None):
        claim: CapabilityClaim | None = next((c for c in claims if c.id == name), None)
        support = claim.support if claim else Support.UNKNOWN
        rows.append(
            (plugin, support.value, (claim and claim.since) or "", claim.note if claim else "")
        )
    return Explanation(
        kind="capability",
        title=f"{name}: {CAPABILITIES[name].summary}",
        facts=(("since", CAPABILITIES[name].since), ("checks", ", ".join(checks) or "none here")),
        columns=_CLAIMS,
        rows=tuple(rows),
    )


def _cuda_name(text: str) -> Explanation | None:
    names = api_table.by_name()
    candidates = (text, f"torch.{text}", f"torch.cuda.{text}")
    name = next((candidate for candidate in candidates if candidate in names), None)
    if name is None:
        return None
    row = names[name]
    facts = [("kind", row.kind), ("treatment", row.treatment.value)]
    facts += [("note", row.note)] if row.note else []
    facts += [("instead", row.replacement)] if row.replacement else []
    rows = []
    for plugin, mappings in _by_plugin("cuda_morph_api_mappings", torch_version=None):
        own: ApiMapping | None = next((m for m in mappings if m.name == name), None)
        if own is None:
            rows.append((plugin, *_without_mapping(plugin, row)))
            continue
        note = " ".join(part for part in (own.note, _instead(own)) if part)
        rows.append((plugin, own.treatment.value, own.support.value, own.target or "", note))
    return Explanation(
        kind="cuda name", title=name, facts=tuple(facts), columns=_BACKENDS, rows=tuple(rows)
    )


def _without_mapping(plugin: str, row: ApiRow) -> tuple[str, str, str, str]:
    backend = get_plugin(plugin).backend
    if backend is not None and backend.device_type == "cuda":
        return "", "", row.name, "PyTorch's own build answers; nothing is changed"
    return row.treatment.value, "", "", "as in core's table"


def _instead(mapping: ApiMapping) -> str:
    return f"Use {mapping.replacement}." if mapping.replacement else ""


def _by_plugin(hook: str, **arguments: Any) -> Iterable[tuple[str, Sequence[Any]]]:
    """Yields every usable plugin with its records, also one that has none."""
    found: dict[str, list[Any]] = {}
    for plugin, record in collect(hook, **arguments):
        found.setdefault(plugin, []).append(record)
    for plugin in plugin_names():
        if get_plugin(plugin).backend is not None:
            yield plugin, found.get(plugin, [])
