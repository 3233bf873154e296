from torch.cuda.amp import GradScaler, autocast  # >> CM205, CM205

scaler = GradScaler()  # >> CM205


@autocast()  # >> CM205
def step():
    pass
