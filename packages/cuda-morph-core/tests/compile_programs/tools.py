"""Around the compiler: export, symbolic traces, fake tensors, TorchScript."""

from __future__ import annotations

import io
import zipfile

import torch
from torch import nn


class Mover(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, value: torch.Tensor):
        return self.layer(value.cuda()) + torch.ones([2], device="cuda")


def device():
    return torch.empty(0, device="cuda").device


def agrees(program, model, value):
    found = program(value)
    assert found.device == device(), found.device
    torch.testing.assert_close(found, model(value))


def check_export(world):
    model, value = Mover().cuda(), torch.ones(2)
    exported = torch.export.export(model, (value,))
    agrees(exported.module(), model, value)
    file = io.BytesIO()
    torch.export.save(exported, file)
    file.seek(0)
    agrees(torch.export.load(file).module(), model, value)


def check_symbolic_trace(world):
    model = Mover().cuda()
    agrees(torch.fx.symbolic_trace(model), model, torch.ones(2))


def check_fake_tensors(world):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        model = nn.Linear(2, 3, device="cuda")
        made = model(torch.ones(1, 2).cuda())
        assert made.is_cuda
        assert made.device.type == device().type


def check_script_module(world):
    model, value = Mover().cuda(), torch.ones(2)
    scripted = torch.jit.script(model)
    agrees(scripted, model, value)
    file = io.BytesIO()
    torch.jit.save(scripted, file)
    for location in ("cuda", torch.device("cuda"), None):
        file.seek(0)
        agrees(torch.jit.load(file, map_location=location), model, value)


def check_trace(world):
    model, value = Mover().cuda(), torch.ones(2)
    agrees(torch.jit.trace(model, value), model, value)


def move(value: torch.Tensor):
    if value.is_cuda:
        return value
    return value.cuda() * 2


def move_twice(value: torch.Tensor):
    return move(move(value))


def check_scripted_functions(world):
    scripted = torch.jit.script(move_twice)
    expected = 1 if world.backend == "cpu" else 2  # every CPU tensor is_cuda there
    assert scripted(torch.ones(1)).item() == move_twice(torch.ones(1)).item() == expected
    file = io.BytesIO()
    torch.jit.save(scripted, file)
    file.seek(0)
    assert torch.jit.load(file)(torch.ones(1)).item() == expected


def check_scripted_is_cuda(world):
    def asks(value: torch.Tensor):
        return value.is_cuda

    scripted = torch.jit.script(asks)
    assert scripted(torch.ones(1, device="cuda")) is True
    if world.backend != "cpu":
        assert scripted(torch.ones(1)) is False


def check_saved_script_names_cuda(world):
    if world.view != "cuda" or world.backend == "cpu":
        return  # devices keep their own name there, in files as well
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(move), file)
    with zipfile.ZipFile(file) as archive:
        code = b"".join(archive.read(name) for name in archive.namelist() if name.endswith(".py"))
    assert b'torch.device("cuda")' in code
    assert b"sim" not in code
