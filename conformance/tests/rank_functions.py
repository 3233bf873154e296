"""What the tests of the rank pool have its ranks do."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from cuda_morph_conformance.registry import CheckFailed, NotRun


def passes(world):
    import torch.distributed as dist

    tensor = world.full(world.rank + 1)
    dist.all_reduce(tensor)
    if tensor.tolist() != [3.0] * 3:
        raise CheckFailed(f"the sum is {tensor.tolist()}")


def notes_its_process(world):
    with Path(os.environ["RANK_NOTES"]).open("a") as notes:
        notes.write(f"{world.rank} {os.getpid()}\n")


def makes_its_own_group(world):
    import torch.distributed as dist

    if dist.is_initialized():
        raise CheckFailed("there is a default group")
    world.join("gloo")


def fails_on_one(world):
    if world.rank == 1:
        raise CheckFailed("rank one says no")


def raises_on_one_while_the_other_waits(world):
    import torch.distributed as dist

    if world.rank == 0:
        raise KeyError("surprise")
    dist.all_reduce(world.full(1))


def is_skipped(world):
    raise NotRun("nothing to see")


def dies(world):
    if world.rank == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(30)


def leaves(world):
    if world.rank == 0:
        print("the last word", flush=True)
        os._exit(5)


def hangs(world):
    if world.rank == 1:
        time.sleep(60)
