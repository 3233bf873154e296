"""Recorded device work: captured and replayed where claimed, refused in words where not."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from cuda_morph.records import Support
from cuda_morph_conformance.models import MLP, exact_products, mlp, numbers
from cuda_morph_conformance.registry import check, require
from cuda_morph_conformance.tolerances import PRODUCT, require_close
from cuda_morph_conformance.vocabulary import Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_morph_conformance.subject import Subject

_accelerates = partial(check, level=Level.ACCELERATES, since="1.0", devices=1)
_HAVE = (Support.FULL, Support.PARTIAL, Support.EMULATED)


@_accelerates("CM-GRPH-001", requires=("graph.capture",))
def work_is_recorded(_subject: Subject) -> None:
    """Work inside torch.cuda.graph MUST be recorded and not run before the replay.

    Fix: map ``torch.cuda.CUDAGraph`` and ``torch.cuda.graph`` to the vendor's graphs with
    ``cuda_morph_api_mappings``, or claim not_yet or never.
    """
    import torch

    x, y = _warmed_up()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y.copy_(x * 2)
    torch.cuda.synchronize()
    require_close(y, torch.zeros(8), "the result before the first replay")
    graph.replay()
    torch.cuda.synchronize()
    require_close(y, 2 * numbers(8), "the result after the first replay")


@_accelerates("CM-GRPH-002", requires=("graph.replay",))
def replays_take_new_data(_subject: Subject) -> None:
    """Each replay MUST compute with what the recorded tensors hold at that time.

    Fix: record addresses, not values; hold on to the memory of the recording's temporaries.
    """
    import torch

    x, y = _warmed_up()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y.copy_((x + 1) * 2)
    for seed in range(1, 4):
        x.copy_(numbers(8, seed=seed))
        graph.replay()
        torch.cuda.synchronize()
        require_close(y, (numbers(8, seed=seed) + 1) * 2, f"replay {seed}")


@_accelerates("CM-GRPH-003", requires=("graph.callables",))
def modules_are_recorded(_subject: Subject) -> None:
    """make_graphed_callables MUST give a module whose results and gradients are the same.

    Fix: see CM-GRPH-002; the backward pass is recorded in a graph of its own.
    """
    import torch

    plain, recorded = mlp().cuda(), mlp().cuda()
    sample = torch.zeros_like(MLP.inputs()).cuda()
    with exact_products():
        recorded = torch.cuda.make_graphed_callables(recorded, (sample,))
        inputs = MLP.inputs().cuda()
        for model in (plain, recorded):
            model(inputs).sum().backward()
        require_close(recorded(inputs), plain(inputs), "the recorded module", kind=PRODUCT)
    for seen, expected in zip(recorded.parameters(), plain.parameters(), strict=True):
        require_close(seen.grad, expected.grad, "a gradient", kind=PRODUCT)


@_accelerates("CM-GRPH-004", requires=("graph.pool",))
def graphs_share_a_pool(_subject: Subject) -> None:
    """Two graphs recorded with one pool MUST both replay right, one after the other.

    Fix: give memory of a pool back only when the last graph that was recorded with it is gone.
    """
    import torch

    x, y = _warmed_up()
    pool = torch.cuda.graph_pool_handle()
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first, pool=pool):
        y.copy_(x * 2)
    with torch.cuda.graph(second, pool=pool):
        y.copy_(y + x)
    first.replay()
    second.replay()
    torch.cuda.synchronize()
    require_close(y, 3 * numbers(8), "the result of both graphs")


@check("CM-GRPH-010", level=Level.RUNS, requires=("error.refusal",), since="1.0", devices=1)
def graphs_are_refused_in_words(subject: Subject) -> None:
    """Where graphs are not claimed, asking for one MUST raise and name the alternative.

    A recording that silently records nothing would leave results unchanged at every replay.

    Fix: leave the names of CUDA graphs to core, which refuses them, or claim ``graph.capture``.
    """
    import torch

    from cuda_morph.errors import RefusedError

    if subject.claims["graph.capture"] in _HAVE:
        return
    calls: dict[str, Callable[[], Any]] = {
        "CUDAGraph()": torch.cuda.CUDAGraph,
        "graph(...)": lambda: torch.cuda.graph(None).__enter__(),
        "make_graphed_callables": lambda: torch.cuda.make_graphed_callables(abs, (1,)),
        "graph_pool_handle": torch.cuda.graph_pool_handle,
    }

    def refused(call: Callable[[], Any]) -> str | None:
        try:
            call()
        except RefusedError as error:
            return error.hint
        return None

    hints = {name: refused(call) for name, call in calls.items()}
    accepted = [name for name, hint in hints.items() if hint is None]
    require(not accepted, f"accepted, while graphs are not claimed: {', '.join(accepted)}")
    require(all(hints.values()), f"refused without an alternative: {hints}")


@check("CM-GRPH-011", level=Level.RUNS, since="1.0", devices=1)
def nothing_is_being_recorded(_subject: Subject) -> None:
    """is_current_stream_capturing MUST be False where nothing is being recorded.

    Fix: remove the override; libraries skip synchronisation where it is True.
    """
    import torch

    require(not torch.cuda.is_current_stream_capturing(), "it is True outside any recording")


def _warmed_up() -> tuple[Any, Any]:
    """Returns input and output, used once on a side stream, as CUDA asks before a recording."""
    import torch

    x, y = numbers(8).cuda(), torch.zeros(8, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        y.copy_(x * 2 + 1 + y)
    torch.cuda.synchronize()
    y.zero_()
    torch.cuda.synchronize()
    return x, y
