from torch.distributed import ProcessGroupNCCL  # >> CM302

options = ProcessGroupNCCL.Options()  # >> CM302
