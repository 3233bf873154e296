from torch.cuda import (
    empty_cache,  # >> CM201
    max_memory_allocated,  # >> CM201
)


def report():
    empty_cache()  # >> CM201
    return max_memory_allocated()  # >> CM201
