class Runner:
    device: str = "cuda"  # >> CM101

    def __init__(self):
        self.device = "cuda:0"  # >> CM101
