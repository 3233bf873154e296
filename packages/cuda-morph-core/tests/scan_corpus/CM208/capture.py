import torch

graph = torch.cuda.CUDAGraph()  # >> CM208
with torch.cuda.graph(graph):  # >> CM208
    pass
