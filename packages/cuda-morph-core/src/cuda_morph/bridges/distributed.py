"""Process groups: the name ``nccl`` stands for the accelerator's own collective backend.

Vendors register their backend under its own name with the official
``torch.distributed.Backend.register_backend``. PyTorch tests for the name ``nccl`` before it looks
at registered backends, so the one thing left to redirect is the place where every spelling
(``"nccl"``, ``"cpu:gloo,cuda:nccl"``, `new_group`) becomes a `Backend`.

Which backend that is depends on the device type alone: two vendors call theirs ``hccl``.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import torch.distributed  # noqa: TID253 - loaded at activation only, when torch already is

from cuda_morph.errors import BackendUnavailableError, RefusedError
from cuda_morph.plugins import collect
from cuda_morph.views import package_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph.device.layer import LayerContext
    from cuda_morph.interception import Target
    from cuda_morph.patching import Journal
    from cuda_morph.records import CollectiveBackend
    from cuda_morph.views import ViewPolicy

NCCL = "nccl"
LACKS_AVERAGE = "-avg"
"""How `CollectiveBackend.ops` says that a library has no average."""
_TIMEOUT = timedelta(minutes=10)


def apply(context: LayerContext, target: Target) -> None:
    """Maps the replaced names onto the plugin's collective backend, where there is one."""
    if not torch.distributed.is_available():
        return
    records: list[CollectiveBackend] = [
        record
        for _, record in collect("cuda_morph_collectives", plugin=context.plugin)
        if not record.device_types or target.device_type in record.device_types
    ]
    names = {
        replaced: _StandIn(record.name, replaced)
        for record in reversed(records)  # where several replace one name, the first counts
        for replaced in record.replaces
        if replaced != record.name
    }
    if not names:
        return
    chosen = names.get(NCCL) or _StandIn(records[0].name, NCCL)
    c10d = torch.distributed.distributed_c10d
    journal, backend = context.journal, c10d.Backend
    # Without a name PyTorch finds the accelerator's backend, but then calls the group one of gloo,
    # which data-parallel training stumbles on.
    names[backend.UNDEFINED] = _StandIn(chosen, backend.UNDEFINED)
    for record in records:
        _register(journal, record, target.device_type)
    if any(record.name == chosen and LACKS_AVERAGE in record.ops for record in records):
        from cuda_morph.bridges import averaging

        averaging.apply(journal)
    renaming = _Renaming(names)
    renaming.original = journal.redirect_function(vars(backend)["__new__"].__func__, renaming)
    journal.update_mapping(
        backend.default_device_backend_map, {"cuda": chosen, target.device_type: chosen}
    )
    if target.policy.view == "cuda":
        naming = _Naming(target.policy)
        naming.original = journal.redirect_function(c10d.get_backend, naming)
        _supply_nccl(journal, target.policy, offered=chosen.asked in names)
    else:
        _name_meshes(journal, target.device_type)


class _StandIn(str):
    """Name of a backend that was asked for under another one."""

    __slots__ = ("asked",)
    asked: str

    def __new__(cls, name: str, asked: str) -> _StandIn:  # noqa: PYI034 - no subclasses
        self = super().__new__(cls, name)
        self.asked = asked
        return self


class _Renaming:
    """Stands for ``Backend.__new__``; answers with the collective backend's own name."""

    original: Callable[..., Any]

    def __init__(self, names: dict[str, _StandIn]) -> None:
        self._names = names

    def __call__(self, cls: Any, name: str) -> Any:
        value = self.original(cls, name)
        if type(name) is _StandIn and value == name:
            return name
        meant = self._names.get(value)
        if meant is None:
            return value
        if str(meant) not in cls.backend_list:
            raise BackendUnavailableError(
                f"The collective backend {str(meant)!r}, which stands for {value!r} on this "
                "accelerator, is not registered with torch.distributed.",
                hint="The accelerator's adapter registers it when it is imported; its build may "
                "lack it. init_process_group('gloo') works on CPU tensors meanwhile.",
            )
        return meant


class _Naming:
    """Stands for ``torch.distributed.get_backend`` in the cuda view.

    Programs compare the answer with the name they asked for. Packages with a branch of their own
    for the accelerator get the name that it really has.
    """

    original: Callable[..., Any]

    def __init__(self, policy: ViewPolicy) -> None:
        self._policy = policy

    def __call__(self, group: Any = None) -> Any:
        name = self.original(group)
        if type(name) is _StandIn and _reader_sees_cuda(self._policy):
            return name.asked
        return name


def _reader_sees_cuda(policy: ViewPolicy) -> bool:
    """Asks the policy about whoever called the redirected function of torch.distributed."""
    frame = sys._getframe(2)
    while frame.f_back is not None and package_of(frame) == "cuda_morph":
        frame = frame.f_back
    return policy.frame_sees_cuda(frame.f_back or frame)


def _register(journal: Journal, record: CollectiveBackend, device_type: str) -> None:
    """Does what ``Backend.register_backend`` does for a backend that the plugin creates."""
    backend = torch.distributed.distributed_c10d.Backend
    name = record.name.lower()
    if record.create is None or name.upper() in backend._plugins:
        return
    if not hasattr(backend, name.upper()):
        journal.set_attribute(backend, name.upper(), name)
    if name not in backend.backend_list:
        backend.backend_list.append(name)
        journal.on_rollback(lambda: backend.backend_list.remove(name))
    custom = torch.distributed.ProcessGroup.BackendType.CUSTOM
    journal.update_mapping(backend.backend_type_map, {name: custom})
    journal.update_mapping(backend.backend_capability, {name: [device_type]})
    plugin = backend._BackendPlugin(record.create, extended_api=False)
    journal.update_mapping(backend._plugins, {name.upper(): plugin})


def _supply_nccl(journal: Journal, policy: ViewPolicy, *, offered: bool) -> None:
    """Says that there is NCCL, and gives programs the class whose options they fill."""
    c10d = torch.distributed.distributed_c10d
    if offered:
        journal.redirect_function(c10d.is_nccl_available, lambda: _reader_sees_cuda(policy))
    if not hasattr(c10d, "ProcessGroupNCCL"):
        for module in (c10d, torch.distributed):
            journal.update_mapping(vars(module), {"ProcessGroupNCCL": ProcessGroupNCCL})


def _name_meshes(journal: Journal, device_type: str) -> None:
    """Lets a mesh over ``cuda`` have the device type that its tensors print."""
    from torch.distributed.device_mesh import DeviceMesh

    accelerator = device_type

    def initialize(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        kind = accelerator if device_type == "cuda" else device_type
        original(self, kind, *args, **kwargs)

    original = journal.redirect_function(DeviceMesh.__init__, initialize)


class ProcessGroupNCCL:
    """Stands for NCCL's process group where PyTorch was built without it.

    No process group is an instance of it. Its options can be filled and given to
    ``init_process_group`` and ``new_group``; an accelerator's backend takes what it understands.
    """

    class Options:
        """NCCL's options.

        Args:
            is_high_priority_stream: Whether collectives run on a stream of high priority.
        """

        def __init__(self, is_high_priority_stream: bool = False) -> None:
            self.is_high_priority_stream = is_high_priority_stream
            self.config = SimpleNamespace()
            self.split_from = None
            self.split_color = 0
            self.global_ranks_in_group: list[int] = []
            self.group_name = ""
            self._timeout = _TIMEOUT

        @property
        def backend(self) -> str:
            """The name that the options are for."""
            return "nccl"

    def __init__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuses: a process group of NCCL itself needs NVIDIA's library.

        Raises:
            RefusedError: Always.
        """
        raise RefusedError(
            "ProcessGroupNCCL cannot be constructed: it is NVIDIA's library itself.",
            hint="Use torch.distributed.init_process_group or new_group with backend='nccl'.",
        )
