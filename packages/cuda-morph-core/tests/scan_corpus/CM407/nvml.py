import pynvml  # >> CM407

pynvml.nvmlInit()
