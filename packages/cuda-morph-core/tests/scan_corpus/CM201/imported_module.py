from torch import cuda  # >> CM201

cuda.manual_seed_all(0)  # >> CM201
