"""Records that plugins return: frozen, slotted, keyword-only dataclasses of stdlib types.

A plugin describes its accelerator with these and nothing else, so a record can be read by the
scanner, the docs and the certificate without importing torch or the vendor's library.
Growth is additive: a new field has a default and raises the minor number of `SPEC`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping  # noqa: TC003 - fields are checked at run time
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any

from cuda_morph.frozen_record import frozen_record

if TYPE_CHECKING:
    from cuda_morph.device.protocol import DeviceRuntime

SPEC = "1.0"
"""Version of the record and hook shapes that this core speaks: ``major.minor``."""


class Support(str, Enum):
    """How far a vendor claims to support one capability or API."""

    FULL = "full"
    PARTIAL = "partial"
    EMULATED = "emulated"
    NOT_YET = "not_yet"
    NEVER = "never"
    UNKNOWN = "unknown"


class Treatment(str, Enum):
    """What happens to one CUDA name while cuda-morph is active."""

    REDIRECT = "redirect"
    """The accelerator's own function answers."""
    ALIAS = "alias"
    """The name already is, or becomes, a device-neutral torch object."""
    EMULATE = "emulate"
    """cuda-morph computes the answer from more basic device functions."""
    STUB = "stub"
    """Accepted without effect; says so once."""
    REFUSE = "refuse"
    """Raises with a code, a reason and what to use instead."""


@frozen_record
class Backend:
    """Identity of one accelerator family.

    Example:
        ``Backend(name="ascend", display_name="Huawei Ascend", vendor="Huawei",
        device_type="npu", adapter_module="torch_npu", collective_backend="hccl",
        visible_devices_env="ASCEND_RT_VISIBLE_DEVICES")``
    """

    name: str
    """The plugin's name; equals its entry-point name and the argument of ``activate``."""
    display_name: str
    vendor: str
    device_type: str
    """Device type as PyTorch prints it, e.g. ``npu``."""
    adapter_module: str | None
    """Module that registers the device with PyTorch, ``None`` when torch has it built in."""
    collective_backend: str | None = None
    """Name of the torch.distributed backend that stands for ``nccl``."""
    visible_devices_env: str | None = None
    """The vendor's counterpart of ``CUDA_VISIBLE_DEVICES``."""
    spec: str = "1.0"
    """Version of the specification the plugin was written for. The default is the first version,
    not core's own: a plugin that says nothing must not seem to keep up with core."""
    runtime_requires: tuple[str, ...] = ()
    """Requirement strings of the vendor's adapter, for messages."""
    smi: str | None = None
    """Command-line tool that lists the cards, e.g. ``npu-smi``."""
    homepage: str = ""
    alloc_conf_env: str | None = None
    launch_blocking_env: str | None = None
    env_defaults: Mapping[str, str] = field(default_factory=dict)
    """Variables of the adapter that programs written for CUDA depend on; set before the adapter
    loads unless the user set them."""
    native_libraries: tuple[str, ...] = ()
    """Top-level packages that have their own branch for this device and keep the native view."""
    simulated: bool = False
    """True when no hardware stands behind the device."""


@frozen_record
class Detection:
    """Whether the accelerator can be used now, and why not."""

    available: bool
    device_count: int = 0
    reason: str = ""
    """One sentence for a person; required when not available."""
    details: Mapping[str, str] = field(default_factory=dict)


@frozen_record
class DeviceMapping:
    """How the source device type is answered by the target device type."""

    source: str = "cuda"
    target: str
    module: str | None = None
    """Dotted name of the device module, e.g. ``torch.npu``; ``None``: ``torch.<target>``."""
    init: Callable[[], object] | None = None
    """Loads the adapter; called once, at activation."""
    runtime: Callable[[], DeviceRuntime] | None = None
    """Builds a custom device runtime; ``None``: the generic one over ``module``."""
    compute_capability: tuple[int, int] = (0, 0)
    """Answer of ``torch.cuda.get_device_capability``; never ``None``, so comparisons work. With
    ``(0, 0)`` the module's own ``get_device_capability`` is asked first, if it gives a pair."""


@frozen_record
class ApiMapping:
    """How one CUDA name behaves on this backend, where it differs from the core table."""

    name: str
    treatment: Treatment
    target: str | None = None
    support: Support = Support.FULL
    since: str | None = None
    note: str = ""
    replacement: str | None = None


@frozen_record
class CapabilityClaim:
    """A vendor's claim about one capability id of :mod:`cuda_morph.capabilities`."""

    id: str
    support: Support
    since: str | None = None
    note: str = ""


@frozen_record
class CollectiveBackend:
    """A torch.distributed backend that can stand for ``nccl``."""

    name: str
    replaces: tuple[str, ...] = ("nccl",)
    device_types: tuple[str, ...] = ()
    create: Callable[..., object] | None = None
    """Called with ``(store, rank, size, timeout)``, returns the backend of a process group;
    ``None``: the vendor's adapter registers the backend itself."""
    ops: tuple[str, ...] = ()
    """Collectives (``all_reduce``) and reductions (``sum``, ``avg``) that the library has, or with
    a minus sign (``-avg``) those that it lacks. Of a kind of which none is listed, nothing is known
    to be missing. Core computes averages where ``-avg`` is listed."""
    dtypes: tuple[str, ...] = ()
    """Dtypes that it takes; ``float64:float32`` says that the first travels as the second. Empty:
    nothing is known to be missing."""
    env_map: Mapping[str, str] = field(default_factory=dict)
    """``NCCL_*`` variable, or another whose name has ``CUDA`` or ``NCCL``, to the vendor's own."""


@frozen_record
class AttentionKernel:
    """A fused attention implementation and the conventions it speaks.

    Core calls ``forward(query, key, value, *, scale, **options)``. In the layout ``bshd`` the
    tensors are (batch, sequence, heads, dimension), in ``bhsd`` (batch, heads, sequence,
    dimension); they may be strided views. Core translates to the first of `layouts`, and the
    output has the same. ``scale`` is always given. Of the options below, core passes those that a
    call uses, and calls only a kernel that lists the feature of each:

    ===============  ==========================  ================================================
    feature          keyword                     meaning
    ===============  ==========================  ================================================
    ``causal``       ``causal=True``             query i sees keys j <= i + Sk - Sq (bottom right)
    ``window``       ``window=(left, right)``    i + Sk - Sq - left <= j <= i + Sk - Sq + right;
                                                 -1 is no limit; with ``causal``, right is 0
    ``softcap``      ``softcap=c``               scores s become c * tanh(s / c), after scaling
                                                 and before biases and masks
    ``alibi``        ``alibi_slopes=tensor``     (batch, heads): slope * abs(i + Sk - Sq - j) is
                                                 subtracted from the score
    ``mask``         ``mask=tensor``             boolean, broadcastable to (batch, heads, Sq, Sk),
                                                 in the kernel's `mask_convention`
    ``dropout``      ``dropout_p=p``             each probability is dropped with p, the others
                                                 divided by 1 - p; repeatable under manual_seed
    ``deterministic`` ``deterministic=True``     gradients are the same bit by bit each time
    ``lse``          ``return_lse=True``         the answer is (output, lse)
    ``gqa``                                      the number of query heads is a multiple of the
                                                 number of key heads; head h uses h // multiple
    ``backward``                                 the output has gradients
    ``empty_rows``                               a query that sees no key gives 0 and lse +inf
    ``value_dim``                                values have another dimension than keys
    ===============  ==========================  ================================================

    ``lse`` is the logarithm of the sum of exponentials of the scores, float32, (batch, heads, Sq).

    ``varlen(query, key, value, *, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, scale,
    **options)`` takes packed (total, heads, dimension); ``cu_seqlens_*`` are integer tensors on the
    device that begin with 0, and are the same object where queries and keys have the same lengths.
    Its lse is (heads, total). There is no mask.

    ``kvcache(query, key_cache, value_cache, *, cache_seqlens, scale, **options)`` takes ``bshd``;
    new keys are already written and queries turned. ``cache_seqlens`` is an integer tensor (batch)
    of filled lengths. Features with more keywords: ``paged`` (``block_table``), ``cache_rows``
    (``cache_rows``: row of each sequence), ``cache_starts`` (``cache_starts``: first position that
    counts). It always needs ``empty_rows``, and has no gradients.

    A kernel that finds it cannot do a call raises ``NotImplementedError`` before any work; the
    next kernel is asked, then PyTorch's own attention.
    """

    name: str
    forward: Callable[..., object]
    varlen: Callable[..., object] | None = None
    kvcache: Callable[..., object] | None = None
    layouts: tuple[str, ...] = ("bshd",)
    mask_convention: str = "true_keeps"
    """``true_keeps`` (PyTorch's boolean convention) or ``true_masks``."""
    dtypes: tuple[str, ...] = ("float16", "bfloat16")
    head_dims: tuple[int, ...] = ()
    """The only head dimensions; empty: any."""
    features: tuple[str, ...] = ()
    priority: int = 0
    """The kernel with the highest number that covers a call is used."""
    max_head_dim: int = 0
    """The largest head dimension; 0: no limit."""


@frozen_record
class ErrorCode:
    """One entry of a vendor's error table."""

    code: str
    name: str
    meaning: str
    remedy: str = ""
    family: str = ""
    semantic: str = "unknown"
    """Class of failure shared by all vendors, e.g. ``out_of_memory``."""
    source: str = ""


@frozen_record
class ErrorRule:
    """A regular expression over error text that gives its semantic class."""

    pattern: str
    semantic: str


@frozen_record
class CheckResult:
    """Outcome of one health check."""

    ok: bool | None
    """``None``: could not be decided here."""
    message: str
    details: Mapping[str, str] = field(default_factory=dict)


@frozen_record
class HealthCheck:
    """One thing that ``cuda-morph doctor`` looks at."""

    id: str
    summary: str
    run: Callable[[], CheckResult]
    fix: str = ""


@frozen_record
class VersionRow:
    """One row of an adapter's published compatibility matrix; ``None`` is unknown."""

    adapter: str
    torch: str
    sdk: str | None = None
    driver: str | None = None
    python: str | None = None
    source: str = ""


@frozen_record
class DtypeSupport:
    """Support of one dtype and what may stand in for it."""

    dtype: str
    support: Support
    substitute: str | None = None
    note: str = ""


@frozen_record
class QuantizationMethod:
    """Support of one quantisation method."""

    method: str
    support: Support
    note: str = ""
    source: str = ""


@frozen_record
class Patch:
    """A change to somebody else's object, and the reason it still exists."""

    target: str
    """Dotted name, e.g. ``some_library.module.function``."""
    when: str
    """Import of this module triggers the patch; a version range may follow, ``lib>=1,<2``."""
    why: str
    how: str
    upstream: str
    remove_when: str
    replacement: Callable[..., Any]
    """Receives the original object, returns what takes its place."""


@frozen_record
class SurfaceName:
    """One public name of an adapter's device module."""

    name: str
    """Relative to the module: ``memory_allocated``, ``Stream.record_event``."""
    kind: str = "function"
    """``function``, ``class``, ``method``, ``constant`` or ``module``."""
    parameters: tuple[str, ...] | None = None
    """Parameter names in order; ``None``: unknown."""


@frozen_record
class AdapterSurface:
    """The public names of a vendor's device module, read from its source."""

    module: str
    """The module as programs reach it, e.g. ``torch.npu``."""
    version: str
    """Version of the adapter that was read."""
    source: str
    names: tuple[SurfaceName, ...] = ()


@frozen_record
class Personality:
    """How a simulated device answers in place of one vendor's adapter.

    Beside it the simulation uses the plugin's `AdapterSurface`, `DeviceMapping`,
    `CollectiveBackend` and `ErrorCode` records.
    """

    device_name: str
    """Name of the card; the simulation always adds that it is simulated."""
    properties: Mapping[str, object] = field(default_factory=dict)
    """The fields of ``get_device_properties`` that the adapter fills, and no others."""
    capability: object = None
    """What the adapter's own ``get_device_capability`` returns."""
    absent_dtypes: tuple[str, ...] = ()
    """Dtypes whose tensors the device refuses."""
    narrowed_dtypes: Mapping[str, str] = field(default_factory=dict)
    """Dtypes that the adapter silently stores in a narrower one."""
    widening_env: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Variable of the adapter to the dtypes of the above that it keeps wide when it is ``true``."""
    error_texts: Mapping[str, str] = field(default_factory=dict)
    """Text that the adapter raises, by semantic class such as ``out_of_memory``."""
    functions: Callable[[], Mapping[str, Callable[..., object]]] | None = None
    """Builds functions of the adapter module besides the device module, by dotted name below it,
    such as fused attention, with the vendor's conventions. Called once, with torch loaded."""
    source: str = ""


@frozen_record
class Simulation:
    """A device that answers in place of another plugin's adapter."""

    detection: Detection
    """Whether it can be had in this process, and why not."""
    load: Callable[[], object]
    """Puts the device in the adapter's place, with its device type; returns what stands for the
    adapter's module. Called at each activation, instead of ``DeviceMapping.init``."""
    unload: Callable[[], object] | None = None
    """Takes back what `load` did beyond the device itself; called when the activation ends."""


@frozen_record
class ExtensionToolchain:
    """How C++ extensions are built for this backend."""

    compiler: str
    env: Mapping[str, str] = field(default_factory=dict)
    extension_class: str | None = None
    symbol_map: Mapping[str, str] = field(default_factory=dict)
    arch_flags: tuple[str, ...] = ()


@frozen_record
class CodegenTarget:
    """An ahead-of-time compilation target."""

    name: str
    create: Callable[..., object]
    ops: tuple[str, ...] = ()
    note: str = ""


@frozen_record
class ExecutionBackend:
    """A runtime that executes ahead-of-time compiled programs."""

    name: str
    create: Callable[..., object]
    targets: tuple[str, ...] = ()
    note: str = ""
