"""Rewriting CUDA code to device-generic PyTorch, by syntax tree, comments and layout kept."""
