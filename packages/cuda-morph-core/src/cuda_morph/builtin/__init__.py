"""What core can do without any vendor: the CPU, and PyTorch's own CUDA left alone."""
