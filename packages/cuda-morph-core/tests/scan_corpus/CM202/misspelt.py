from torch.cuda import syncronize  # >> CM202

syncronize()  # >> CM202
