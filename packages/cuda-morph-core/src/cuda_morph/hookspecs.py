"""The hooks a plugin may implement; :mod:`cuda_morph.hook_table` says how core calls each.

A hook returns frozen records of :mod:`cuda_morph.records` and nothing else. A plugin needs two of
the hooks, `cuda_morph_backend` and `cuda_morph_detect`; each of the others adds one ability.
The functions below are specifications: core never runs their bodies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_morph.hook_marks import ENTRY_POINT_GROUP, IMPL_MARK, PROJECT, hookimpl, hookspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cuda_morph import records

__all__ = ["ENTRY_POINT_GROUP", "IMPL_MARK", "PROJECT", "hookimpl", "hookspec"]


@hookspec
def cuda_morph_backend() -> records.Backend:
    """Say which accelerator family the plugin speaks for. Required.

    The name must equal the entry point's name. Neither torch nor the vendor's library may be
    imported here.

    Example:
        from cuda_morph.hookspecs import hookimpl
        from cuda_morph.records import Backend

        @hookimpl
        def cuda_morph_backend():
            return Backend(
                name="mychip",
                display_name="MyChip",
                vendor="MyChip Inc.",
                device_type="mychip",
                adapter_module="torch_mychip",
                visible_devices_env="MYCHIP_VISIBLE_DEVICES",
                runtime_requires=("torch-mychip>=1.0",),
            )
    """
    raise NotImplementedError


@hookspec
def cuda_morph_detect() -> records.Detection:
    """Say whether the accelerator can be used in this process, and if not, why. Required.

    Must not raise: every failure is a `Detection` with a reason that a user can act on.
    The vendor's library may be tried.

    Example:
        from importlib.util import find_spec

        from cuda_morph.hookspecs import hookimpl
        from cuda_morph.records import Detection

        @hookimpl
        def cuda_morph_detect():
            if find_spec("torch_mychip") is None:
                return Detection(available=False, reason="torch-mychip is not installed")
            return Detection(available=True, device_count=1)
    """
    raise NotImplementedError


@hookspec
def cuda_morph_device_mapping() -> records.DeviceMapping | None:
    """Say which device type answers for ``cuda`` and which module answers for ``torch.cuda``.

    Without this hook the mapping is ``DeviceMapping(target=Backend.device_type)``.

    Example:
        from cuda_morph.hookspecs import hookimpl
        from cuda_morph.records import DeviceMapping

        def load_adapter():
            import torch_mychip
            return torch_mychip

        @hookimpl
        def cuda_morph_device_mapping():
            return DeviceMapping(
                target="mychip",
                module="torch.mychip",
                init=load_adapter,
                compute_capability=(8, 0),
            )
    """
    raise NotImplementedError


@hookspec
def cuda_morph_api_mappings(torch_version: str | None) -> Iterable[records.ApiMapping]:
    """List the CUDA names that this backend answers otherwise than core's own table says.

    Args:
        torch_version: PyTorch release asked about, such as ``2.13.0``; ``None`` when it is not
            known, then answer for the newest one supported.

    Example:
        from cuda_morph.hookspecs import hookimpl
        from cuda_morph.records import ApiMapping, Support, Treatment

        @hookimpl
        def cuda_morph_api_mappings(torch_version):
            yield ApiMapping(
                name="torch.cuda.utilization",
                treatment=Treatment.REDIRECT,
                target="torch.mychip.utilization",
            )
            yield ApiMapping(
                name="torch.cuda.jiterator",
                treatment=Treatment.REFUSE,
                support=Support.NEVER,
                note="compiles CUDA C++ at run time",
                replacement="torch.compile",
            )
    """
    raise NotImplementedError


@hookspec
def cuda_morph_capabilities(torch_version: str | None) -> Iterable[records.CapabilityClaim]:
    """Claim support of capability ids; what is not claimed counts as ``unknown``.

    Args:
        torch_version: PyTorch release asked about; ``None`` when it is not known.

    Example:
        from cuda_morph.hookspecs import hookimpl
        from cuda_morph.records import CapabilityClaim, Support

        @hookimpl
        def cuda_morph_capabilities(torch_version):
            yield CapabilityClaim(id="stream.create", support=Support.FULL, since="1.0")
            yield CapabilityClaim(
                id="dtype.float64", support=Support.NEVER, note="no double precision units"
            )
    """
    raise NotImplementedError


@hookspec
def cuda_morph_collectives() -> Iterable[records.CollectiveBackend]:
    """Name the torch.distributed backends that can stand for ``nccl``.

    Example:
        from cuda_morph.hookspecs import hookimpl
        from cuda_morph.records import CollectiveBackend

        @hookimpl
        def cuda_morph_collectives():
            yield CollectiveBackend(
                name="mccl",
                device_types=("mychip",),
                ops=("all_reduce", "broadcast"),
                env_map={"NCCL_DEBUG": "MCCL_DEBUG"},
            )
    """
    raise NotImplementedError


@hookspec
def cuda_morph_attention_kernels() -> Iterable[records.AttentionKernel]:
    """Offer fused attention kernels with the conventions they speak.

    Example:
        from cuda_morph.hookspecs import hookimpl
        from cuda_morph.records import AttentionKernel

        def forward(query, key, value, **options):
            import torch_mychip
            return torch_mychip.fused_attention(query, key, value, **options)

        @hookimpl
        def cuda_morph_attention_kernels():
            yield AttentionKernel(
                name="mychip_fused",
                forward=forward,
                mask_convention="true_masks",
                head_dims=(64, 128),
                features=("causal", "gqa"),
            )
    """
    raise NotImplementedError


@hookspec
def cuda_morph_error_codes() -> Iterable[records.ErrorCode | records.ErrorRule]:
    """Explain the vendor's error codes, and recognise failures by their text.

    Example:
        from cuda_morph.hookspecs import hookimpl
        from cuda_morph.records import ErrorCode, ErrorRule

        @hookimpl
        def cuda_morph_error_codes():
            yield ErrorCode(
                code="MC0207",
                name="MC_OUT_OF_MEMORY",
                meaning="The card has no free block of the requested size.",
                remedy="Use a smaller batch, or free cached blocks first.",
                semantic="out_of_memory",
            )
            yield ErrorRule(pattern=r"mcMalloc failed", semantic="out_of_memory")
    """
    raise NotImplementedError


@hookspec
def cuda_morph_health_checks() -> Iterable[records.HealthCheck]:
    """Add checks to ``cuda-morph doctor``.

    Example:
        import shutil

        from cuda_morph.hookspecs import hookimpl
        from cuda_morph.records import CheckResult, HealthCheck

        def driver_tool():
            path = shutil.which("mychip-smi")
            return CheckResult(ok=path is not None, message=f"mychip-smi: {path or 'not found'}")

        @hookimpl
        def cuda_morph_health_checks():
            yield HealthCheck(
                id="mychip.driver",
                summary="The driver's tool is on PATH",
                run=driver_tool,
                fix="Install the MyChip driver.",
            )
    """
    raise NotImplementedError


@hookspec
def cuda_morph_version_matrix() -> Iterable[records.VersionRow]:
    """Publish which versions of adapter, PyTorch, SDK and driver go together.

    Example:
        from cuda_morph.hookspecs import hookimpl
        from cuda_morph.records import VersionRow

        @hookimpl
        def cuda_morph_version_matrix():
            yield VersionRow(
                adapter="1.0",
                torch="2.13",
                sdk="5.1",
                source="https://mychip.example/compatibility",
            )
    """
    raise NotImplementedError


@hookspec
def cuda_morph_dtypes() -> Iterable[records.DtypeSupport]:
    """Say which dtypes the device has and which may stand in for the others.

    Example:
        from cuda_morph.hookspecs import hookimpl
        from cuda_morph.records import DtypeSupport, Support

        @hookimpl
        def cuda_morph_dtypes():
            yield DtypeSupport(dtype="bfloat16", support=Support.FULL)
            yield DtypeSupport(dtype="float64", support=Support.NEVER, substitute="float32")
    """
    raise NotImplementedError


@hookspec
def cuda_morph_quantization() -> Iterable[records.QuantizationMethod]:
    """Say which quantisation methods have kernels on this device.

    Example:
        from cuda_morph.hookspecs import hookimpl
        from cuda_morph.records import QuantizationMethod, Support

        @hookimpl
        def cuda_morph_quantization():
            yield QuantizationMethod(method="gptq", support=Support.PARTIAL, note="4 bit only")
    """
    raise NotImplementedError


@hookspec
def cuda_morph_patches() -> Iterable[records.Patch]:
    """List the changes to other libraries that are still needed, each with its reason.

    Example:
        from cuda_morph.hookspecs import hookimpl
        from cuda_morph.records import Patch

        def keep_device(original):
            def replacement(*args, **kwargs):
                return original(*args, **kwargs)
            return replacement

        @hookimpl
        def cuda_morph_patches():
            yield Patch(
                target="some_library.device.pick",
                when="some_library>=1,<2",
                why="Version 1 looks for two vendors by name only.",
                how="Wraps the function; the original is asked first.",
                upstream="https://some-library.example/changes/12",
                remove_when="some_library 2 is the oldest supported release",
                replacement=keep_device,
            )
    """
    raise NotImplementedError


@hookspec
def cuda_morph_extension_toolchain() -> records.ExtensionToolchain | None:
    """Say how C++ extensions are compiled for this device.

    Example:
        from cuda_morph.hookspecs import hookimpl
        from cuda_morph.records import ExtensionToolchain

        @hookimpl
        def cuda_morph_extension_toolchain():
            return ExtensionToolchain(
                compiler="mcc",
                env={"MYCHIP_HOME": "/opt/mychip"},
                extension_class="torch_mychip.cpp_extension.MyChipExtension",
                symbol_map={"cudaMalloc": "mcMalloc"},
                arch_flags=("--arch=mc100",),
            )
    """
    raise NotImplementedError


@hookspec
def cuda_morph_codegen_targets() -> Iterable[records.CodegenTarget]:
    """Offer targets of the ahead-of-time compiler.

    Example:
        from cuda_morph.hookspecs import hookimpl
        from cuda_morph.records import CodegenTarget

        def create(**options):
            import mychip_codegen
            return mychip_codegen.Target(**options)

        @hookimpl
        def cuda_morph_codegen_targets():
            yield CodegenTarget(name="mychip", create=create, ops=("aten.mm", "aten.relu"))
    """
    raise NotImplementedError


@hookspec
def cuda_morph_execution_backends() -> Iterable[records.ExecutionBackend]:
    """Offer runtimes that execute ahead-of-time compiled programs.

    Example:
        from cuda_morph.hookspecs import hookimpl
        from cuda_morph.records import ExecutionBackend

        def create(**options):
            import mychip_runtime
            return mychip_runtime.Executor(**options)

        @hookimpl
        def cuda_morph_execution_backends():
            yield ExecutionBackend(name="mychip", create=create, targets=("mychip",))
    """
    raise NotImplementedError


@hookspec
def cuda_morph_surface() -> records.AdapterSurface | None:
    """List the public names of the adapter's device module, as its source shows them.

    `explain`, `check` and the simulated device read it; nothing of the adapter is imported.

    Example:
        from cuda_morph.hookspecs import hookimpl
        from cuda_morph.records import AdapterSurface, SurfaceName

        @hookimpl
        def cuda_morph_surface():
            return AdapterSurface(
                module="torch.mychip",
                version="1.0",
                source="torch_mychip 1.0 wheel",
                names=(
                    SurfaceName(name="device_count", kind="function"),
                    SurfaceName(name="set_device", kind="function", parameters=("device",)),
                ),
            )
    """
    raise NotImplementedError


@hookspec
def cuda_morph_personality() -> records.Personality | None:
    """Say how a simulated device answers in place of this backend's adapter.

    With it, ``activate("sim:mychip")`` tries the plugin on a device that has the adapter's names,
    limits and error texts. Facts only: what the adapter is not known to do is left out.

    Example:
        from cuda_morph.hookspecs import hookimpl
        from cuda_morph.records import Personality

        @hookimpl
        def cuda_morph_personality():
            return Personality(
                device_name="MyChip 100",
                properties={"name": "MyChip 100", "total_memory": 16 << 30},
                absent_dtypes=("float64",),
                error_texts={"out_of_memory": "mcMalloc failed: MC0207"},
                source="torch_mychip 1.0 documentation",
            )
    """
    raise NotImplementedError


@hookspec
def cuda_morph_simulate(subject: str) -> records.Simulation | None:
    """Offer to simulate the device of another plugin: ``activate("sim:mychip")``.

    Only for a plugin whose device is simulated itself. What the other plugin says about its
    adapter, its `Personality` above all, is read with `cuda_morph.plugins.collect`.

    Args:
        subject: Name of the plugin to be simulated; it has a personality.

    Example:
        from cuda_morph.hookspecs import hookimpl
        from cuda_morph.records import Detection, Simulation

        def load():
            import mychip_simulator
            return mychip_simulator.adapter

        @hookimpl
        def cuda_morph_simulate(subject):
            found = Detection(available=True, device_count=1, details={"poses as": subject})
            return Simulation(detection=found, load=load)
    """
    raise NotImplementedError
