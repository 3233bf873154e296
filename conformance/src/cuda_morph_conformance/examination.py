"""Runs over several plugins at once: what the command line does after it has read its options."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.progress import follow
from cuda_morph_conformance.registry import CHECKS
from cuda_morph_conformance.runner import LIMIT, Quiet, all_keys, find_entry, keys_of, run_plugin
from cuda_morph_conformance.vocabulary import Level, Seen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cuda_morph_conformance.result import Report, Result
    from cuda_morph_conformance.runner import Key
    from cuda_morph_conformance.waivers import Waiver


def choose_keys(
    *,
    level: str | None = None,
    ids: Iterable[str] = (),
    pattern: str = "",
    view: str | None = None,
) -> tuple[Key, ...]:
    """Choose results to go for, while a plugin is developed.

    Args:
        level: Checks up to this level.
        ids: These checks; empty: all.
        pattern: Checks whose id or sentence contains this, in any case.
        view: Results in this view.

    Returns:
        The chosen ones, in the order of the checklist.
    """
    load_all()
    wanted = set(ids)
    return tuple(
        key
        for check in CHECKS.values()
        for key in keys_of(check)
        if (not wanted or check.id in wanted)
        and (not level or check.level.rank <= Level(level).rank)
        and pattern.lower() in f"{check.id} {check.must}".lower()
        and view in {None, key[1]}
    )


def examine(
    plugins: Sequence[str],
    *,
    keys: Sequence[Key] | None = None,
    waivers: Iterable[Waiver] = (),
    limit: float = LIMIT,
    fail_fast: bool = False,
    jobs: int | None = None,
) -> list[Report]:
    """Go through the checklist with several plugins, as many processes at a time as cores.

    Args:
        plugins: Entry-point names.
        keys: What to run; by default everything.
        waivers: Failures to let pass.
        limit: Seconds that one check may take.
        fail_fast: End at the first failure.
        jobs: Processes at a time; by default one per core.

    Returns:
        One report per plugin, in their order.

    Raises:
        UnknownBackendError: One of them is not installed.
    """
    load_all()
    for name in plugins:
        find_entry(name)
    due = len(all_keys() if keys is None else keys)
    stop = threading.Event()
    quiet = Quiet(len(plugins) or 1)
    width = jobs or os.cpu_count() or 1
    with (
        follow(due * len(plugins)) as progress,
        ThreadPoolExecutor(width) as workers,
        ThreadPoolExecutor(len(plugins) or 1) as fronts,
    ):

        def one(name: str) -> Report:
            def step(result: Result) -> None:
                progress.step(name, result)
                if fail_fast and result.seen is Seen.FAILED:
                    stop.set()

            options = {"limit": limit, "stop": stop, "on_result": step, "quiet": quiet}
            return run_plugin(name, keys=keys, waivers=waivers, pool=workers, **options)

        try:
            return list(fronts.map(one, plugins))
        except BaseException:
            stop.set()
            raise
