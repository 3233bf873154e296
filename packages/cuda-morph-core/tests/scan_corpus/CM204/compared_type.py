def f(x):
    return x.type() == "torch.cuda.FloatTensor"  # >> CM204
