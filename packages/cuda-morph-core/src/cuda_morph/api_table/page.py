"""Writes the documentation page of the API table: ``python -m cuda_morph.api_table.page``."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from cuda_morph import api_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cuda_morph.api_table import ApiRow

_HEAD = """\
# The CUDA surface

<!-- Written by `python -m cuda_morph.api_table.page` from its JSON files; a test compares. -->

What each CUDA name does while cuda-morph is active. The same table drives the runtime. A test
compares it with the names of the installed PyTorch ({torch}), and another calls every row on the
simulated device and on the cpu backend, in both views.

{counts}

* **redirect**: the accelerator's own function answers.
* **alias**: the name already is, or becomes, a device-neutral object of PyTorch.
* **emulate**: the answer is made from more basic functions of the accelerator.
* **stub**: accepted without effect; a `StubWarning` says so once per activation.
* **refuse**: raises `RefusedError` (`CM-E07`) with the reason and what to use instead.

## Policies

* `torch.version.cuda` stays `None`: libraries take it for the proof of an NVIDIA toolkit.
  `CUDA_MORPH_CUDA_VERSION=12.4` gives scripts that parse it something to read.
* `torch.backends.cuda.is_built()` is True in the cuda view, for the code that sees a CUDA machine
  there.
* `torch.backends.cudnn` remembers its switches; `is_available()` is False and `version()` is
  `None`: there is no cuDNN.
* `torch.cuda.get_device_capability()` is what the plugin declares, never `None`.
* CUDA graphs are refused: `CUDAGraph`, `graph`, `make_graphed_callables`. Run eagerly or use
  `torch.compile`.
* Saved checkpoints carry `cuda:N` as a tensor's location in the cuda view. In the native view
  they carry the accelerator's name, or `cuda:N` with `CUDA_MORPH_PORTABLE_CHECKPOINTS=1`. Files
  tagged `cuda:N` load in both.
* `CUDA_VISIBLE_DEVICES`, `CUDA_LAUNCH_BLOCKING`, `PYTORCH_CUDA_ALLOC_CONF` and `NCCL_*` are
  handed to the backend under its own names before its adapter loads, where the plugin names a
  counterpart. The backend's own variable wins. Identifiers such as `GPU-...` are not handed on.
  What a program writes to them after `import torch` comes too late under `cuda-morph run`.
* A dtype that the accelerator lacks, as its plugin declares, is replaced by the plugin's
  substitute with a warning, or refused with `CUDA_MORPH_DTYPES=refuse`.
* Memory snapshots and history are valid and empty, with a notice: the file opens in PyTorch's
  memory viewer and shows no blocks.
* Autocast without a dtype takes PyTorch's default for the device type; it is never float32 in
  silence.
"""
_TITLES = {"torch._C": "Functions of `torch._C`"}


def render() -> str:
    """Returns the page as Markdown."""
    rows = (*api_table.load(), *api_table.library_rows())
    counts = Counter(row.treatment.value for row in rows)
    summary = ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
    head = _HEAD.format(torch="2.13", counts=f"{len(rows)} names: {summary}.")
    sections = [head]
    for module in sorted({_module(row) for row in rows}, key=lambda name: (name[6] == "_", name)):
        own = [row for row in rows if _module(row) == module]
        title = _TITLES.get(module, f"`{module}`")
        sections.append(f"## {title}\n\n{_table(own, module)}")
    return "\n".join(sections)


def _module(row: ApiRow) -> str:
    """Returns the module under which a row is listed; submodules are their own first row."""
    return row.name if row.kind == "submodule" else row.name.rpartition(".")[0]


def _table(rows: Iterable[ApiRow], module: str) -> str:
    lines = ["| name | treatment | what happens | instead |", "|---|---|---|---|"]
    for row in rows:
        short = row.name.removeprefix(f"{module}.")
        instead = _cell(f"{row.replacement}") if row.replacement else ""
        lines.append(f"| `{short}` | {row.treatment.value} | {_cell(row.note)} | {instead} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(render())
