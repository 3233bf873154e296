"""What a rank sees when the other one is late, is aborted, or has died."""

import os
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from start import run, start

LATE = 1.5


def failure(call):
    begin = time.monotonic()
    with pytest.raises(dist.DistBackendError) as failed:
        call()
    return str(failed.value), time.monotonic() - begin


def work(rank, store):
    device = start(rank, store, "simccl", seconds=30)
    impatient = dist.new_group(timeout=timedelta(seconds=LATE))
    aborted = dist.new_group()
    ones = torch.ones(2, device=device)
    if rank == 1:
        time.sleep(3 * LATE)
        os._exit(7)
    text, seconds = failure(lambda: dist.all_reduce(ones, group=impatient))
    assert "simccl: all_reduce failed on rank 0 of 2" in text, text
    assert "another rank has ended or does not answer" in text, text
    assert LATE / 2 < seconds < 2 * LATE, seconds

    work = dist.all_reduce(ones, group=aborted, async_op=True)
    receive = dist.irecv(torch.zeros(2, device=device), 1, group=aborted)
    aborted.abort()
    for handle in (work, receive):
        text, seconds = failure(handle.wait)
        assert "aborted" in text, text
        assert seconds < 1, seconds
    with pytest.raises(RuntimeError, match="was aborted"):
        dist.all_reduce(ones, group=aborted)

    text, seconds = failure(lambda: dist.all_reduce(ones))
    assert "all_reduce failed on rank 0" in text, text
    assert seconds < 15, "a rank that has died is noticed before the timeout"


if __name__ == "__main__":
    run(work, exit_codes=(0, 7))
