import tensorrt as trt  # >> CM407
from transformer_engine.pytorch import Linear  # >> CM407
