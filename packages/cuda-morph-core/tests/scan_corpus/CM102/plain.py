import torch

model = torch.nn.Linear(2, 2).cuda()  # >> CM102
x = torch.ones(2).cuda(1)  # >> CM102
y = x.cuda(non_blocking=True)  # >> CM102
