nvidia-smi -L # >> CM715
NVCC=$(which nvcc) # >> CM715
