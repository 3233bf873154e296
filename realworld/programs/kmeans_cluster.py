"""Cluster points on the GPU with kmeans_pytorch, as its README shows."""

import numpy as np
import torch
from kmeans_pytorch import kmeans, kmeans_predict

torch.manual_seed(0)
np.random.seed(1)  # noqa: NPY002 - kmeans_pytorch draws its first centres from it
centres = torch.tensor([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
x = torch.cat([centre + torch.randn(200, 2) for centre in centres])
ids, found = kmeans(X=x, num_clusters=3, distance="euclidean", device=torch.device("cuda:0"))
print("sizes", sorted(torch.bincount(ids).tolist()))
again = kmeans_predict(x, found, "euclidean", device=torch.device("cuda:0"))
print("prediction agrees", torch.equal(ids, again))
