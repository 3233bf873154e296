"""pytorch_memlab: memory line by line, from the counters of CUDA's allocator."""

import torch
from pytorch_memlab import LineProfiler, MemReporter


def work(size):
    zeros = torch.zeros(size, size, device="cuda")
    product = zeros @ zeros
    return product.sum()


with LineProfiler(work) as profiler:
    work(512)
profiler.print_stats()

layer = torch.nn.Linear(1024, 1024).cuda()
layer(torch.randn(16, 1024).cuda()).mean().backward()
MemReporter(layer).report()
