query = "select cuda from cards where device = 'cuda'"
words = "cuda nccl".split()
