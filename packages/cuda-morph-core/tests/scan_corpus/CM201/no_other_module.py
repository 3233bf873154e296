import mylib as torch

torch.cuda.synchronize()
