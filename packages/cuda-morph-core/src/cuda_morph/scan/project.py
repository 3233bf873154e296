"""Scanning a whole tree: several processes, a cache, totals."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_morph.scan.file_scan import FileResult, scan_file
from cuda_morph.scan.source_files import MAX_SIZE, find_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cuda_morph.scan.cache import Cache

BATCH = 40
"""Files per task: large enough that handing tasks over costs little."""
_WORTH_A_PROCESS = 120
"""Below this number of files starting processes takes longer than scanning."""


def scan_project(
    paths: Sequence[Path],
    *,
    exclude: Sequence[str] = (),
    max_size: int = MAX_SIZE,
    jobs: int | None = None,
    cache: Cache | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[FileResult]:
    """Scans files and folders.

    Args:
        paths: What to scan.
        exclude: Glob patterns of paths or names to leave out.
        max_size: Bytes above which a file is not read.
        jobs: Processes; ``None``: one for each processor that this one may use.
        cache: Results of earlier scans; it is updated, and saved by the caller.
        progress: Called with the number of files done and of all files.

    Returns:
        A result per file, in the order of the tree.
    """
    files = list(find_files(paths, exclude))
    results: dict[str, FileResult] = {}
    pending: list[tuple[str, str]] = []
    for path, kind in files:
        known = cache.get(path, max_size) if cache else None
        if known is not None:
            results[str(path)] = known
        else:
            pending.append((str(path), kind))
    tell = progress or (lambda *_: None)
    tell(len(results), len(files))
    for result in _scan(pending, max_size, _jobs(jobs, len(pending))):
        results[result.path] = result
        if cache:
            cache.put(Path(result.path), result, max_size)
        tell(len(results), len(files))
    return [results[str(path)] for path, _ in files]


def _jobs(wanted: int | None, files: int) -> int:
    available = wanted or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return 1 if files < _WORTH_A_PROCESS else max(1, available)


def _scan(pending: Sequence[tuple[str, str]], max_size: int, jobs: int) -> Iterator[FileResult]:
    batches = [pending[start : start + BATCH] for start in range(0, len(pending), BATCH)]
    if jobs == 1:
        for batch in batches:
            yield from scan_batch(batch, max_size)
        return
    with ProcessPoolExecutor(jobs) as pool:
        futures = [pool.submit(scan_batch, batch, max_size) for batch in batches]
        for future in as_completed(futures):
            yield from future.result()


def scan_batch(batch: Sequence[tuple[str, str]], max_size: int) -> list[FileResult]:
    """Scans some files, in whatever process."""
    return [scan_file(Path(path), kind, max_size) for path, kind in batch]
