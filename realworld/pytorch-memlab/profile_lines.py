"""Profile GPU memory line by line with pytorch_memlab, as its README shows."""

import torch
from pytorch_memlab import LineProfiler, MemReporter


def inner():
    torch.nn.Linear(100, 100).cuda()


def outer():
    linear = torch.nn.Linear(100, 100).cuda()
    linear2 = torch.nn.Linear(100, 100).cuda()
    inner()
    return linear, linear2


with LineProfiler(outer, inner) as profiler:
    outer()
profiler.print_stats()

model = torch.nn.Linear(512, 512).cuda()
model(torch.randn(64, 512).cuda()).mean().backward()
MemReporter(model).report()
