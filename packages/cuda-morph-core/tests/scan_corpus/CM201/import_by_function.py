import importlib

cuda = importlib.import_module("torch.cuda")  # >> CM201
cuda.synchronize()  # >> CM201
