from torch import tensor

tensorrt_free = True
