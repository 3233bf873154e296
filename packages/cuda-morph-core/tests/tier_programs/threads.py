"""Several threads and child processes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from world import only


def work(number):
    value = torch.full((4,), float(number), device="cuda")
    return (value.cuda() + value.to("cuda")).sum().item(), str(value.device)


def check_threads_see_the_device(world):
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(64)))
    assert results == [(8.0 * number, world.text()) for number in range(64)]


@only(backends=("sim",))
def check_each_thread_has_its_own_current_device(world):
    found = []

    def other():
        torch.cuda.set_device(1)
        found.append(torch.ones(1, device="cuda").device)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert found == [world.device(1)]
    assert torch.ones(1, device="cuda").device == world.device(0)


def check_backward_runs_on_its_own_thread(world):
    weight = torch.ones(4, device="cuda", requires_grad=True)
    seen = []
    weight.register_hook(lambda gradient: seen.append(torch.zeros(1, device="cuda").device))
    (weight * 2).sum().backward()
    assert seen == [world.device()]


def check_data_loader_with_pinned_memory(world):
    data = torch.utils.data.TensorDataset(torch.arange(8.0))
    loader = torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True)
    batches = [batch.to("cuda", non_blocking=True) for (batch,) in loader]
    assert [batch.sum().item() for batch in batches] == [6, 22]
    assert {batch.device for batch in batches} == {world.device()}
