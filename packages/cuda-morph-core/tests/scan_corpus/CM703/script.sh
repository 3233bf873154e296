CUDA_LAUNCH_BLOCKING=1 python train.py # >> CM703
