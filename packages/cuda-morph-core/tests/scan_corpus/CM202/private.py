import torch

torch.cuda._sleep_forever(10)  # >> CM202
