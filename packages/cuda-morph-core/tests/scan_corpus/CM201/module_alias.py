import torch.cuda as tc  # >> CM201

tc.empty_cache()  # >> CM201
