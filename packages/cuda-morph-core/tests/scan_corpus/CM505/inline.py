from torch.utils.cpp_extension import load_inline

ops = load_inline(name="k", cpp_sources="", cuda_sources="__global__ void f() {}")  # >> CM505
