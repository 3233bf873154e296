print("set CUDA_VISIBLE_DEVICES to choose a card")
