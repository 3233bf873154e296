import os

os.environ["NCCL_DEBUG"] = "INFO"  # >> CM705
os.environ.pop("TORCH_NCCL_ASYNC_ERROR_HANDLING", None)  # >> CM705
