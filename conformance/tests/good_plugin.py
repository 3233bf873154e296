"""A complete plugin whose accelerator is never here; tests break it in one place each."""

from cuda_morph.hookspecs import hookimpl
from cuda_morph.records import Backend, Detection


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


@hookimpl
def cuda_morph_detect():
    try:
        import torch_mychip  # noqa: F401
    except Exception as error:
        return Detection(available=False, reason=f"torch-mychip cannot be loaded: {error}")
    return Detection(available=True, device_count=1)
