from xformers.ops import memory_efficient_attention  # >> CM405
