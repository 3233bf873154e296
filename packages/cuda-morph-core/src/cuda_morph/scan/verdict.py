"""What becomes of a finding on one target, by that plugin's own records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_morph import api_table
from cuda_morph.frozen_record import frozen_record
from cuda_morph.plugins import collect, get_plugin
from cuda_morph.records import ApiMapping, Backend, Support, Treatment
from cuda_morph.scan.finding import Effort, Verdict
from cuda_morph.scan.rules import RULES

if TYPE_CHECKING:
    from cuda_morph.scan.finding import Finding

_BY_TREATMENT = {
    Treatment.REDIRECT: Verdict.REDIRECTED,
    Treatment.ALIAS: Verdict.REDIRECTED,
    Treatment.EMULATE: Verdict.EMULATED,
    Treatment.STUB: Verdict.EMULATED,
}
_BY_SUPPORT = {
    Support.FULL: Verdict.REDIRECTED,
    Support.PARTIAL: Verdict.REDIRECTED,
    Support.EMULATED: Verdict.EMULATED,
    Support.NOT_YET: Verdict.UNSUPPORTED,
    Support.NEVER: Verdict.UNSUPPORTED,
    Support.UNKNOWN: Verdict.UNKNOWN,
}
_CAPABILITY = {
    "CM204": "dtype.legacy_types",
    "CM208": "graph.capture",
    "CM209": "io.profiler",
    "CM401": "attn.flash_attn_import",
    "CM402": "compile.triton",
    "CM506": "ext.custom_op",
}
_EFFORT = {
    Verdict.UNCHANGED: Effort.NONE,
    Verdict.REDIRECTED: Effort.NONE,
    Verdict.EMULATED: Effort.NONE,
    Verdict.REWRITABLE: Effort.HOURS,
    Verdict.UNSUPPORTED: Effort.REWRITE,
    Verdict.UNKNOWN: Effort.MINUTES,
}
COVERED = frozenset({Verdict.UNCHANGED, Verdict.REDIRECTED, Verdict.EMULATED})
"""Verdicts that leave nothing to do."""


@frozen_record
class Judgement:
    """A verdict with its reason."""

    verdict: Verdict
    effort: Effort
    note: str = ""


class Judge:
    """Gives verdicts for one target, or for cuda-morph in general.

    Args:
        target: Name of a plugin; ``None``: core's own table only.

    Raises:
        UnknownBackendError: No plugin has the name.
        PluginError: The plugin is broken.
    """

    def __init__(self, target: str | None = None) -> None:
        self.target = target
        self._mappings: dict[str, ApiMapping] = {}
        self._claims: dict[str, tuple[Support, str]] = {}
        self._variables: dict[str, str] = {}
        self._collectives = True
        self._native = False
        self._quantization: dict[str, tuple[Support, str]] = {}
        if target is not None:
            self._read(target)

    def _read(self, target: str) -> None:
        row = get_plugin(target)
        for _, mapping in collect("cuda_morph_api_mappings", plugin=target, torch_version=None):
            self._mappings[mapping.name] = mapping
        for _, claim in collect("cuda_morph_capabilities", plugin=target, torch_version=None):
            self._claims[claim.id] = (claim.support, claim.note)
        collectives = [record for _, record in collect("cuda_morph_collectives", plugin=target)]
        self._collectives = any("nccl" in record.replaces for record in collectives)
        for record in collectives:
            self._variables.update(record.env_map)
        if row.backend is not None:
            self._variables.update(_backend_variables(row.backend))
            self._native = row.backend.device_type == "cuda"
        for _, method in collect("cuda_morph_quantization", plugin=target):
            self._quantization[method.method] = (method.support, method.note)

    def judge(self, found: Finding) -> Judgement:
        """Returns the verdict on one finding."""
        rule = RULES[found.rule]
        group = rule.group
        if found.rule in _CAPABILITY and self.target is not None:
            return self._by_claim(_CAPABILITY[found.rule], rule.effort)
        if group == "CM2":
            return self._by_table(found, rule.verdict, rule.effort)
        if group == "CM3" and self.target is not None and not self._collectives:
            return Judgement(
                verdict=Verdict.UNSUPPORTED,
                effort=Effort.HOURS,
                note=f"{self.target} names no collective backend",
            )
        if (
            group == "CM7"
            and self.target is not None
            and rule.name.endswith(("devices", "setting", "blocking", "variable"))
        ):
            return self._by_variable(found.symbol)
        if found.rule == "CM403" and "bitsandbytes" in self._quantization:
            support, note = self._quantization["bitsandbytes"]
            verdict = _BY_SUPPORT[support]
            return Judgement(verdict=verdict, effort=_EFFORT[verdict], note=note)
        return Judgement(verdict=rule.verdict, effort=rule.effort)

    def _by_table(self, found: Finding, verdict: Verdict, effort: Effort) -> Judgement:
        mapping = self._mappings.get(found.symbol)
        row = api_table.by_name().get(found.symbol)
        if mapping is not None:
            treatment, note, instead = mapping.treatment, mapping.note, mapping.replacement
            if mapping.support in {Support.UNKNOWN, Support.NOT_YET}:
                verdict = _BY_SUPPORT[mapping.support]
                return Judgement(verdict=verdict, effort=_EFFORT[verdict], note=note)
        elif self._native:
            note = f"PyTorch for {self.target} answers itself; nothing is changed there."
            return Judgement(verdict=Verdict.UNCHANGED, effort=Effort.NONE, note=note)
        elif row is not None:
            treatment, note, instead = row.treatment, row.note, row.replacement
        else:
            return Judgement(verdict=verdict, effort=effort)
        if treatment is Treatment.REFUSE:
            verdict = Verdict.REWRITABLE if instead else Verdict.UNSUPPORTED
            note = f"{note} Use {instead}." if instead else note
        else:
            verdict = _BY_TREATMENT[treatment]
        if treatment is Treatment.STUB:
            note = f"Accepted without effect. {note}"
        return Judgement(verdict=verdict, effort=_EFFORT[verdict], note=note.strip())

    def _by_claim(self, capability: str, effort: Effort) -> Judgement:
        support, note = self._claims.get(capability, (Support.UNKNOWN, ""))
        verdict = _BY_SUPPORT[support]
        text = f"{self.target} claims {support.value} for {capability}. {note}".strip()
        own = effort if verdict is Verdict.UNSUPPORTED else _EFFORT[verdict]
        return Judgement(verdict=verdict, effort=own, note=text)

    def _by_variable(self, name: str) -> Judgement:
        counterpart = self._variables.get(name)
        if counterpart:
            return Judgement(
                verdict=Verdict.REDIRECTED,
                effort=Effort.NONE,
                note=f"Taken over into {counterpart}.",
            )
        return Judgement(
            verdict=Verdict.UNKNOWN,
            effort=Effort.MINUTES,
            note=f"{self.target} names no counterpart.",
        )


def _backend_variables(backend: Backend) -> dict[str, str]:
    pairs = {
        "CUDA_VISIBLE_DEVICES": backend.visible_devices_env,
        "PYTORCH_CUDA_ALLOC_CONF": backend.alloc_conf_env,
        "CUDA_LAUNCH_BLOCKING": backend.launch_blocking_env,
    }
    return {name: other for name, other in pairs.items() if other}
