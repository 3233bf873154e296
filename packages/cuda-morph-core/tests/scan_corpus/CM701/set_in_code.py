import os

os.environ["CUDA_VISIBLE_DEVICES"] = "0"  # >> CM701
if "CUDA_VISIBLE_DEVICES" in os.environ:  # >> CM701
    ids = os.getenv("CUDA_VISIBLE_DEVICES", "")  # >> CM701
