print("run nvidia-smi to see the cards")
