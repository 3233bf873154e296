"""The device side: what stands below ``torch.cuda`` while cuda-morph is active."""
