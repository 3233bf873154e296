import bitsandbytes as bnb  # >> CM403

layer = bnb.nn.Linear8bitLt
