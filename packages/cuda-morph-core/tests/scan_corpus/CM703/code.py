import os

os.environ["CUDA_LAUNCH_BLOCKING"] = "1"  # >> CM703
