import torch

torch.cuda.Stream().wait_stream(None)  # >> CM201
