"""Operators that flash_attn writes in Triton; here they are PyTorch's."""
