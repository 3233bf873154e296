import importlib.util

if importlib.util.find_spec("flash_attn") is not None:  # >> CM401
    import flash_attn  # >> CM401
