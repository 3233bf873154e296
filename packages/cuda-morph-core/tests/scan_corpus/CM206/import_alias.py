import torch.backends.cudnn as cudnn  # >> CM206

cudnn.enabled = False  # >> CM206
