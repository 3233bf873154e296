def f(model, rank):
    device = "cuda:" + str(rank)  # >> CM106
    return model.to(device)
