from torch.utils.cpp_extension import CppExtension, load

ops = load(name="ops", sources=["ops.cpp"])
extension = CppExtension("a", ["a.cpp"])
