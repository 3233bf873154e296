"""Process groups: the name ``nccl`` stands for the accelerator's own collective backend.

Vendors register their backend under its own name with the official
``torch.distributed.Backend.register_backend``. PyTorch tests for the name ``nccl`` before it looks
at registered backends, so the one thing left to redirect is the place where every spelling
(``"nccl"``, ``"cpu:gloo,cuda:nccl"``, `new_group`) becomes a `Backend`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch.distributed  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph.plugins import collect

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.device.layer import LayerContext
    from cuda_morph.interception.tier import Target
    from cuda_morph.records import CollectiveBackend


def apply(context: LayerContext, target: Target) -> None:
    """Maps the replaced names onto the plugin's collective backend, where there is one."""
    if not torch.distributed.is_available():
        return
    records: list[CollectiveBackend] = [
        record for _, record in collect("cuda_morph_collectives", plugin=context.plugin)
    ]
    names = {
        replaced: record.name
        for record in records
        for replaced in record.replaces
        if replaced != record.name
    }
    if not names:
        return
    c10d = torch.distributed.distributed_c10d
    journal, backend = context.journal, c10d.Backend
    renaming = _Renaming(names)
    renaming.original = journal.redirect_function(vars(backend)["__new__"].__func__, renaming)
    chosen = names.get("nccl", records[0].name)
    journal.update_mapping(
        backend.default_device_backend_map, {"cuda": chosen, target.device_type: chosen}
    )
    if "nccl" in names and target.policy.view == "cuda":
        journal.redirect_function(c10d.is_nccl_available, lambda: True)


class _Renaming:
    """Stands for ``Backend.__new__``; answers with the collective backend's own name."""

    original: Callable[..., Any]

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def __call__(self, cls: type, name: str) -> Any:
        value = self.original(cls, name)
        return self._names.get(value, value)
