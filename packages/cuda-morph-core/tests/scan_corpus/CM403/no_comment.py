import torch  # bitsandbytes is optional
