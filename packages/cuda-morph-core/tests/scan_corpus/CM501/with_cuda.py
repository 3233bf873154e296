from torch.utils.cpp_extension import load

ops = load(name="ops", sources=["ops.cpp"], with_cuda=True)  # >> CM501
