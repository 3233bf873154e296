raise_hint = "run with CUDA_LAUNCH_BLOCKING=1"
