"""Level ``loads``: asking whether the accelerator is here is safe, quick and answered."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

    from cuda_morph_conformance.subject import Subject

_SECONDS = 5.0


@check("CM-LOAD-030", level=Level.LOADS, since="0.1")
def detection_is_consistent(subject: Subject) -> None:
    """Detection MUST count at least one device when available, and give a reason when not.

    Fix: return ``Detection(available=False, reason="what is missing and how to get it")``.
    """
    detection = subject.detection()
    if detection.available:
        require(detection.device_count >= 1, f"available with {detection.device_count} devices")
    else:
        require(detection.reason.strip(), "not available, without a reason")
        require(detection.device_count == 0, f"not available with {detection.device_count} devices")


@check("CM-LOAD-031", level=Level.LOADS, since="0.1", fresh=True)
def detection_is_quick(subject: Subject) -> None:
    """The first detection MUST answer within five seconds.

    Fix: ask the driver's library or count device files instead of starting a tool or the adapter.
    """
    subject.backend()
    start = time.perf_counter()
    subject.detection()
    seconds = time.perf_counter() - start
    require(seconds < _SECONDS, f"it took {seconds:.1f} s")


@check("CM-LOAD-032", level=Level.LOADS, since="0.1", fresh=True)
def survives_a_broken_adapter(subject: Subject) -> None:
    """Detection MUST answer, not raise, when the adapter is installed but cannot be loaded.

    Fix: catch every exception of the adapter's import, not ``ImportError`` alone: a missing shared
    library raises ``OSError``, a driver that is too old may raise anything.
    """
    adapter = subject.backend().adapter_module
    if adapter is None:
        return
    with _unloadable(adapter):
        subject.detection()


class _Unloadable(MetaPathFinder):
    """Finds the adapter, and fails to load it as a missing driver library would."""

    def __init__(self, adapter: str) -> None:
        self.adapter = adapter

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the protocol's signature
        target: ModuleType | None = None,  # noqa: ARG002 - likewise
    ) -> ModuleSpec | None:
        if fullname != self.adapter:
            return None
        return ModuleSpec(fullname, self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        raise OSError(f"lib{spec.name}.so: cannot open shared object file (made by this check)")

    def exec_module(self, module: ModuleType) -> None:
        """Never reached: creation fails."""


@contextmanager
def _unloadable(adapter: str) -> Iterator[None]:
    finder = _Unloadable(adapter)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
