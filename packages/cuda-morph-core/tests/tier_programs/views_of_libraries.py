"""What user code, and a library with its own branch for the accelerator, are told."""

from __future__ import annotations

import torch
import vendor_library
from world import raises


def check_user_code_sees_the_view(world):
    there = torch.ones(1, device="cuda")
    assert there.device.type == world.shown
    assert torch.cuda.is_available() is (world.view == "cuda")
    assert there.is_cuda


def check_the_library_sees_the_accelerator(world):
    there = torch.ones(1, device="cuda")
    assert vendor_library.available() is False
    assert vendor_library.type_of(there) == world.device_type
    assert vendor_library.seen_as_cuda(there) is (world.view == "native")


def check_both_at_once_on_threads(world):
    from concurrent.futures import ThreadPoolExecutor

    there = torch.ones(1, device="cuda")

    def ask(number):
        if number % 2:
            return torch.cuda.is_available(), there.device.type
        return vendor_library.available(), vendor_library.type_of(there)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(200)))
    assert set(answers[1::2]) == {(world.view == "cuda", world.shown)}
    assert set(answers[::2]) == {(False, world.device_type)}


def check_an_error_in_the_library_changes_nothing(world):
    raises(ValueError, vendor_library.fail)
    check_user_code_sees_the_view(world)
