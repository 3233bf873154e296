"""Shapes in buckets: what the compiler is spared, and that nothing changes in the results."""

from __future__ import annotations

import torch
from torch._dynamo.testing import CompileCounter

from cuda_morph import ShapeBucketer, get_compile_backend

LENGTHS = (3, 4, 5, 6, 7, 9, 11, 15)


def model(x):
    return (x * 2).cumsum(0)


def compile_counting():
    counter = CompileCounter()
    return torch.compile(model, backend=counter, dynamic=False), counter


def check_recompilations_without(world):
    compiled, counter = compile_counting()
    for length in LENGTHS:
        compiled(torch.ones(length, device="cuda"))
    assert counter.frame_count == len(LENGTHS)


def check_recompilations_with(world):
    compiled, counter = compile_counting()
    bucketer = ShapeBucketer([8, 16])
    for length in LENGTHS:
        value = torch.ones(length, device="cuda")
        padded = bucketer.pad(value)
        assert torch.equal(padded.unpad(compiled(padded.tensor)), model(value))
    assert counter.frame_count == 2


def check_padding(world):
    value = torch.ones(2, 5, 3, device="cuda")
    padded = ShapeBucketer([4, 8], value=-1.0).pad(value, dim=-2)
    assert padded.tensor.shape == (2, 8, 3)
    assert padded.tensor.device == padded.mask.device == value.device
    assert padded.mask.tolist() == [True] * 5 + [False] * 3
    assert padded.tensor[:, 5:].eq(-1).all()
    assert torch.equal(padded.unpad(), value)


def check_length_of_a_bucket_is_not_copied(world):
    value = torch.ones(4, device="cuda")
    assert ShapeBucketer([4, 8]).pad(value).tensor is value


def check_cache_is_bounded(world):
    bucketer = ShapeBucketer([64], cache_size=5)
    for length in range(1, 40):
        bucketer.pad(torch.ones(length, device="cuda"))
    assert len(bucketer._masks) == 5


def check_backend_name_compiles(world):
    name = get_compile_backend()
    assert name == "inductor"
    value = torch.ones(3, device="cuda")
    assert torch.equal(torch.compile(model, backend=name)(value), model(value))
