from bitsandbytes.optim import Adam8bit  # >> CM403
