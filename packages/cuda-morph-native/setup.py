"""Builds the one C extension; a machine without a compiler still gets an importable package."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "cuda_morph_native._native",
            sources=[
                "src/cuda_morph_native/module.c",
                "src/cuda_morph_native/device_string.c",
                "src/cuda_morph_native/offset_table.c",
                "src/cuda_morph_native/device_type.c",
                "src/cuda_morph_native/tensor_methods.c",
                "src/cuda_morph_native/calling_frame.c",
                "src/cuda_morph_native/event_class.c",
                "src/cuda_morph_native/raised_error.c",
            ],
            depends=["src/cuda_morph_native/native.h", "src/cuda_morph_native/offset_table.h"],
            # A C++ exception raised by the device-string parser passes through our frame.
            extra_compile_args=["-O2", "-fexceptions", "-fvisibility=hidden", "-std=c11"],
            # Core works without the extension, on a slower tier, and says so in info().
            optional=True,
        )
    ]
)
