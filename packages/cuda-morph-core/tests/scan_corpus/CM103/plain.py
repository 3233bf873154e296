def f(x):
    return x.is_cuda  # >> CM103
