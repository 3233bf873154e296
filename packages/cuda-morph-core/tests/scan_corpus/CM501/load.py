from torch.utils.cpp_extension import load

ops = load(name="ops", sources=["ops.cpp", "ops_kernel.cu"])  # >> CM501
