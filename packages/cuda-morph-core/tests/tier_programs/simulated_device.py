"""What only a device with memory of its own shows."""

from __future__ import annotations

import torch
from world import raises


def check_mixing_devices_is_an_error(world):
    message = raises(RuntimeError, torch.add, torch.ones(2, device="cuda"), torch.ones(2))
    assert "same device" in message
    assert world.shown in message


def check_numbers_mix_with_any_device(world):
    assert (torch.ones(2, device="cuda") + torch.tensor(1.0)).tolist() == [2, 2]


def check_two_devices_do_not_mix(world):
    raises(RuntimeError, torch.add, torch.ones(2, device="cuda:0"), torch.ones(2, device="cuda:1"))


def check_copies_between_devices(world):
    first = torch.arange(3, device="cuda:0")
    second = first.to("cuda:1")
    assert second.device == world.device(1)
    second += 1
    assert first.tolist() == [0, 1, 2]
    first.copy_(second)
    assert first.tolist() == [1, 2, 3]


def check_out_of_memory(world):
    free, _total = torch.cuda.mem_get_info()
    message = raises(
        torch.cuda.OutOfMemoryError, torch.empty, free + (1 << 30), device="cuda", dtype=torch.int8
    )
    assert "out of memory" in message
    assert torch.ones(1, device="cuda").item() == 1


def check_memory_is_counted_and_freed(world):
    before = torch.cuda.memory_allocated()
    block = torch.ones(1 << 20, device="cuda")
    assert torch.cuda.memory_allocated() - before >= 4 << 20
    del block
    assert torch.cuda.memory_allocated() == before


def check_numpy_refuses_device_tensors(world):
    raises(TypeError, torch.ones(1, device="cuda").numpy)
