def train(use_cuda=True):
    return use_cuda


train(use_cuda=True)
