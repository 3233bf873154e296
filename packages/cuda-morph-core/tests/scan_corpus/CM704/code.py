import os

os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"  # >> CM704
home = os.environ.get("CUDA_HOME")  # >> CM704
