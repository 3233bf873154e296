"""Parameters stay the same objects when a module moves, as on CUDA."""

import torch
from torch import nn


def _step(model, optimizer):
    before = model.weight.detach().clone()
    optimizer.zero_grad()
    model(torch.ones(4, model.in_features, device=model.weight.device)).sum().backward()
    optimizer.step()
    return not torch.equal(before, model.weight.detach())


def check_optimizer_made_before_cuda(_world):
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.cuda()
    assert _step(model, optimizer)


def check_optimizer_follows_to_and_back(_world):
    model = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    weight = model.weight
    model.to("cuda")
    assert model.weight is weight
    assert _step(model, optimizer)
    model.cpu()
    assert model.weight is weight
    assert weight.device.type == "cpu"


def check_shared_weights_stay_shared(_world):
    first, second = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
    second.weight = first.weight
    model = nn.Sequential(first, second).cuda()
    assert model[0].weight is model[1].weight
    model.half()
    assert model[0].weight is model[1].weight
    assert model[1].weight.dtype == torch.float16


def check_gradients_move_too(_world):
    model = nn.Linear(2, 1)
    model(torch.ones(1, 2)).sum().backward()
    model.cuda()
    assert model.weight.grad.device == model.weight.device


def check_moving_while_a_graph_is_alive(_world):
    model = nn.Linear(2, 1)
    loss = model(torch.ones(1, 2)).sum()
    model.cuda()
    assert model.weight.is_cuda
    loss.backward()
