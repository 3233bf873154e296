def f(x):
    return x.to(0)  # >> CM105
