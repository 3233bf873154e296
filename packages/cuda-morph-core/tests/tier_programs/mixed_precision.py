"""Autocast in all its spellings, and the gradient scaler."""

from __future__ import annotations

import warnings

import torch
from torch.amp import autocast as early_autocast


def product():
    value = torch.ones(4, 4, device="cuda")
    return (value @ value).dtype


def quietly(make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return make()


CONTEXTS = {
    "torch.autocast": lambda dtype: torch.autocast("cuda", dtype=dtype),
    "torch.autocast(device_type=)": lambda dtype: torch.autocast(device_type="cuda", dtype=dtype),
    "torch.amp.autocast": lambda dtype: torch.amp.autocast("cuda", dtype=dtype),
    "early torch.amp.autocast": lambda dtype: early_autocast("cuda", dtype=dtype),
    "torch.cuda.amp.autocast": lambda dtype: quietly(lambda: torch.cuda.amp.autocast(dtype=dtype)),
}


def check_every_context_computes_in_its_dtype(world):
    for dtype in (torch.bfloat16, torch.float16):
        found = {}
        for name, make in CONTEXTS.items():
            with make(dtype):
                found[name] = product()
        assert set(found.values()) == {dtype}, found
    assert product() == torch.float32


def check_default_dtype_of_the_device(world):
    with torch.autocast("cuda"):
        assert product() == torch.get_autocast_dtype("cuda")
        expected = product()
    with quietly(torch.cuda.amp.autocast):
        assert product() == expected
    assert expected in (torch.float16, torch.bfloat16)


def check_decorators(world):
    @torch.autocast("cuda", dtype=torch.bfloat16)
    def first():
        return product()

    @quietly(lambda: torch.cuda.amp.autocast(dtype=torch.bfloat16))
    def second():
        return product()

    assert first() == second() == torch.bfloat16


def check_switched_off(world):
    with torch.autocast("cuda", dtype=torch.bfloat16), torch.autocast("cuda", enabled=False):
        assert product() == torch.float32


def check_custom_functions(world):
    class Double(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
        def forward(ctx, value):
            return value * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx, gradient):
            return gradient * 2

    value = torch.ones(2, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        result = Double.apply(value)
    result.sum().backward()
    assert result.dtype == torch.float32
    assert value.grad.tolist() == [2, 2]


def check_old_custom_functions(world):
    class Double(torch.autograd.Function):
        @staticmethod
        @quietly(lambda: torch.cuda.amp.custom_fwd(cast_inputs=torch.float32))
        def forward(ctx, value):
            return value * 2

        @staticmethod
        @torch.cuda.amp.custom_bwd
        def backward(ctx, gradient):
            return gradient * 2

    value = torch.ones(2, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert Double.apply(value).dtype == torch.float32


def check_state_functions(world):
    assert torch.amp.is_autocast_available("cuda")
    assert torch.is_autocast_enabled("cuda") is False
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert torch.is_autocast_enabled("cuda") is True
        assert torch.get_autocast_dtype("cuda") == torch.bfloat16
    before = torch.get_autocast_dtype("cuda")
    torch.set_autocast_dtype("cuda", torch.float16)
    assert torch.get_autocast_dtype("cuda") == torch.float16
    torch.set_autocast_dtype("cuda", before)
    torch.set_autocast_enabled("cuda", False)


SCALERS = {
    "torch.amp.GradScaler": lambda: torch.amp.GradScaler("cuda", init_scale=8.0),
    "torch.amp.GradScaler(device=)": lambda: torch.amp.GradScaler(device="cuda", init_scale=8.0),
    "torch.GradScaler": lambda: torch.GradScaler("cuda", init_scale=8.0),
    "default device": lambda: torch.amp.GradScaler(init_scale=8.0),
    "torch.cuda.amp.GradScaler": lambda: quietly(lambda: torch.cuda.amp.GradScaler(init_scale=8.0)),
}


def check_scaler_is_enabled_and_scales(world):
    for name, make in SCALERS.items():
        scaler = make()
        assert scaler.is_enabled(), name
        assert scaler.scale(torch.ones(1, device="cuda")).item() == 8.0, name


def check_scaler_steps(world):
    for name, make in SCALERS.items():
        weight = torch.ones(2, device="cuda", requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=1.0)
        scaler = make()
        scaler.scale((weight * 2).sum()).backward()
        assert weight.grad.tolist() == [16, 16]
        scaler.step(optimizer)
        scaler.update()
        assert weight.tolist() == [-1, -1], name


def check_scaler_skips_overflow(world):
    weight = torch.ones(2, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [1, 1]
    assert scaler.get_scale() == 4.0


def check_training_step(world):
    model = torch.nn.Linear(4, 1).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    data = torch.randn(8, 4, device="cuda")
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = (model(data) - 1).float().pow(2).mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
