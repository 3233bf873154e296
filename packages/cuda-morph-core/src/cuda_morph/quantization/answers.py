"""What each backend says of a quantisation method, with the source of the claim."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from cuda_morph.frozen_record import frozen_record
from cuda_morph.plugin_status import USABLE
from cuda_morph.plugins import collect, discover, get_plugin
from cuda_morph.records import Support

if TYPE_CHECKING:
    from cuda_morph.records import QuantizationMethod

_HOOK = "cuda_morph_quantization"
USABLE_SUPPORT = frozenset({Support.FULL, Support.PARTIAL, Support.EMULATED})


@frozen_record
class Answer:
    """One backend's claim."""

    backend: str
    support: Support
    note: str = ""
    source: str = ""

    def as_dict(self) -> dict[str, str]:
        """Returns the answer as JSON-ready values."""
        return asdict(self) | {"support": self.support.value}


def ask(method: str, backend: str | None = None) -> tuple[Answer, ...]:
    """Asks every backend, or one.

    Args:
        method: As transformers and vLLM spell it.
        backend: Name of a plugin.

    Returns:
        An answer each; a backend that says nothing of the method answers unknown.

    Raises:
        UnknownBackendError: The named plugin is not installed.
        PluginError: The named plugin cannot be used.
    """
    names = [backend] if backend else [row.name for row in discover() if row.status in USABLE]
    if backend is not None:
        get_plugin(backend)
    records = collect(_HOOK, plugin=backend)
    return tuple(
        _answer(name, method, [record for owner, record in records if owner == name])
        for name in names
    )


def _answer(name: str, method: str, records: list[QuantizationMethod]) -> Answer:
    wanted = _spelling(method)
    for record in records:
        if _spelling(record.method) == wanted:
            return Answer(
                backend=name, support=record.support, note=record.note, source=record.source
            )
    related = [one for one in records if wanted in _spelling(one.method).split("-")]
    if related:
        names = ", ".join(one.method for one in related)
        note = f"Has {names}; whether these read this checkpoint is not known."
        return Answer(backend=name, support=Support.UNKNOWN, note=note, source=related[0].source)
    note = "The plugin says nothing of this method." if records else "The plugin makes no claims."
    return Answer(backend=name, support=Support.UNKNOWN, note=note)


def _spelling(method: str) -> str:
    return method.lower().replace("_", "-")
