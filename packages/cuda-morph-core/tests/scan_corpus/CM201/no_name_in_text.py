HELP = "calls torch.cuda.synchronize()"
