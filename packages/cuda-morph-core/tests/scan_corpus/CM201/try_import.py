try:
    import torch
except ImportError:
    torch = None

if torch is not None and torch.cuda.is_available():  # >> CM201
    pass
