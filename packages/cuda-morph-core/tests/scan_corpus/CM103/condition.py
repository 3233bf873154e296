def f(x, y):
    assert x.is_cuda and y.is_cuda, "both on the card"  # >> CM103, CM103
