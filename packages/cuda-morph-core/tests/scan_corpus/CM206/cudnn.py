import torch
from torch.backends import cudnn  # >> CM206

torch.backends.cudnn.benchmark = True  # >> CM206
cudnn.deterministic = True  # >> CM206
