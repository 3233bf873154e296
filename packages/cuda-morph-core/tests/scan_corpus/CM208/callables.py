from torch.cuda import make_graphed_callables  # >> CM208


def f(net, x):
    return make_graphed_callables(net, (x,))  # >> CM208
