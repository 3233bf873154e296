def f(:  # >> CM901
    return torch.cuda
