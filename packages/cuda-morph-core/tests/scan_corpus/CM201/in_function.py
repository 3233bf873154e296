def f():
    import torch

    return torch.cuda.memory_allocated()  # >> CM201
