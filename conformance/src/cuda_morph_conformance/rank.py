"""One rank: activates the plugin, joins a group, and runs what the worker sends."""

from __future__ import annotations

import json
import os
import random
import sys
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.registry import CheckFailed, NotRun
from cuda_morph_conformance.subject import Subject
from cuda_morph_conformance.worker import SEED

if TYPE_CHECKING:
    from torch import Tensor

TIMEOUT = timedelta(seconds=30)
"""Of every group: longer than any check, so that a rank that waits too long is noticed first."""


@dataclass
class World:
    """What a function knows of the rank that it runs on."""

    subject: Subject
    rank: int
    size: int
    folder: Path
    serial: int = 0
    """Number of the job; the same on all ranks."""
    joins: int = 0
    """How many groups the job has started."""

    @property
    def device(self) -> Any:
        """The rank's own device."""
        import torch

        return torch.device("cuda", self.rank)

    @property
    def other(self) -> int:
        """The other one of two ranks."""
        return 1 - self.rank

    def own(self, values: Any, dtype: Any = None) -> Tensor:
        """Returns a tensor on the rank's device."""
        import torch

        return torch.tensor(values, dtype=dtype, device=self.device)

    def full(self, value: float, *shape: int, dtype: Any = None) -> Tensor:
        """Returns a tensor of one value on the rank's device."""
        import torch

        return torch.full(shape or (3,), value, dtype=dtype or torch.float32, device=self.device)

    def join(self, *arguments: Any, **options: Any) -> None:
        """Call ``init_process_group`` with the rank, and a meeting place of this job."""
        import torch

        meeting = self.folder / f"store-{self.serial}-{self.joins}"
        self.joins += 1
        options = {"rank": self.rank, "world_size": self.size, "timeout": TIMEOUT, **options}
        torch.distributed.init_process_group(*arguments, init_method=f"file://{meeting}", **options)

    def leave(self) -> None:
        """Ends the default group, if there is one."""
        import torch

        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


def main(argument: str) -> None:
    """Serve until the worker closes the standard input.

    Args:
        argument: JSON: plugin, view, rank, size, folder, and the descriptor for answers.
    """
    order = json.loads(argument)
    os.set_inheritable(order["channel"], False)
    with os.fdopen(order["channel"], "w", encoding="utf-8", buffering=1) as channel:
        subject = Subject(order["plugin"], view=order["view"])
        world = World(subject, order["rank"], order["size"], Path(order["folder"]))
        try:
            subject.activate()
            _use_device(world)
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
            # Not "raised": the process is of no use to later checks.
            _answer(channel, "died", f"activation raised {type(error).__name__}: {error}")
            return
        _answer(channel, "passed", "")
        for line in sys.stdin:
            _answer(channel, *_do(json.loads(line), world))
    # Threads of a group that is still there must not hold the process up.
    os._exit(0)


def _use_device(world: World) -> None:
    import torch

    torch.cuda.set_device(world.rank)


def _do(job: dict[str, Any], world: World) -> tuple[str, str]:
    import torch

    world.serial, world.joins = job["serial"], 0
    module, _, name = job["function"].partition(":")
    function = getattr(import_module(module), name)
    random.seed(SEED)
    torch.default_generator.manual_seed(SEED)
    try:
        if job["bare"] or job["anew"]:
            world.leave()
        if not job["bare"] and not torch.distributed.is_initialized():
            world.join("nccl")
        function(world)
    except CheckFailed as failure:
        return "failed", str(failure)
    except NotRun as reason:
        return "skipped", str(reason)
    except BaseException as error:  # noqa: BLE001 - a plugin may raise anything, SystemExit too
        return "raised", f"raised {type(error).__name__}: {error}"
    finally:
        _calm(world, leave=job["bare"])
    return "passed", ""


def _calm(world: World, *, leave: bool) -> None:
    """Undoes what a function may have left, so that the next starts alike."""
    import torch

    torch.set_grad_enabled(True)
    try:
        if leave:
            world.leave()
        torch.cuda.set_device(world.rank)
    except Exception as error:  # noqa: BLE001 - the next check will meet it
        sys.stderr.write(f"{type(error).__name__}: {error}\n")


def _answer(channel: Any, seen: str, message: str) -> None:
    channel.write(json.dumps({"seen": seen, "message": message}) + "\n")
