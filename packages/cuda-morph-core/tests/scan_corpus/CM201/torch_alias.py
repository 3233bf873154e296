import torch as t

t.cuda.synchronize()  # >> CM201
