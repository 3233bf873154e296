def move(batch):
    return {key: value.cuda() for key, value in batch.items()}  # >> CM102
