"""The class that programs know from CUDA builds for the options of a process group."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, NoReturn

from cuda_morph.errors import RefusedError

_TIMEOUT = timedelta(minutes=10)


class ProcessGroupNCCL:
    """Stands for NCCL's process group where PyTorch was built without it.

    No process group is an instance of it. Its options can be filled and given to
    ``init_process_group`` and ``new_group``; an accelerator's backend takes what it understands.
    """

    class Options:
        """NCCL's options.

        Args:
            is_high_priority_stream: Whether collectives run on a stream of high priority.
        """

        def __init__(self, is_high_priority_stream: bool = False) -> None:
            self.is_high_priority_stream = is_high_priority_stream
            self.config = SimpleNamespace()
            self.split_from = None
            self.split_color = 0
            self.global_ranks_in_group: list[int] = []
            self.group_name = ""
            self._timeout = _TIMEOUT

        @property
        def backend(self) -> str:
            """The name that the options are for."""
            return "nccl"

    def __init__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuses: a process group of NCCL itself needs NVIDIA's library.

        Raises:
            RefusedError: Always.
        """
        raise RefusedError(
            "ProcessGroupNCCL cannot be constructed: it is NVIDIA's library itself.",
            hint="Use torch.distributed.init_process_group or new_group with backend='nccl'.",
        )
