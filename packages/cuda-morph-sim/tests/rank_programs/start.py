"""Starts two ranks of this folder's programs on the simulated device."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

SIZE = 2


def start(rank: int, store: str, backend: str, seconds: float = 60) -> str:
    """Joins the group and returns this rank's device."""
    import torch

    import cuda_morph_sim.device  # noqa: F401

    torch.distributed.init_process_group(
        backend,
        init_method=f"file://{store}",
        rank=rank,
        world_size=SIZE,
        timeout=timedelta(seconds=seconds),
    )
    torch.sim.set_device(rank)
    return f"sim:{rank}"


def run(program, exit_codes=(0,) * SIZE) -> None:
    """Runs ``program(rank, store)`` in processes of their own; each must end as it should."""
    os.environ["CUDA_MORPH_SIM_DEVICES"] = str(SIZE)
    store = str(Path(tempfile.mkdtemp(), "store"))
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=program, args=(rank, store)) for rank in range(SIZE)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    found = tuple(rank.exitcode for rank in ranks)
    if found != exit_codes:
        raise SystemExit(f"ranks ended with {found}, not {exit_codes}")
    sys.stdout.write("both ranks done\n")
