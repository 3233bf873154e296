print("torch.cuda.FloatTensor is an old name of a type")
