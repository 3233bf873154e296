from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension  # >> CM501

setup(ext_modules=[CUDAExtension("ops", ["ops.cpp"])], cmdclass={"build_ext": BuildExtension})  # >> CM501
