"""Memory figures of the process and the machine, read where the kernel keeps them."""

from __future__ import annotations

import os
from pathlib import Path

_STATUS = Path("/proc/self/status")
_MEMINFO = Path("/proc/meminfo")
_CLEAR_REFS = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # proc(5): resets the peak resident set size


def _kilobytes(path: Path, field: str) -> int:
    try:
        for line in path.read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return 0
    return 0


def resident_bytes() -> int:
    """Returns the resident set size of this process in bytes; 0 where it cannot be read."""
    return _kilobytes(_STATUS, "VmRSS:")


def peak_resident_bytes() -> int:
    """Returns the largest resident set size since the last reset, in bytes."""
    peak = _kilobytes(_STATUS, "VmHWM:")
    if peak:
        return peak
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def reset_peak_resident_bytes() -> None:
    """Restarts the peak from the present size, where the kernel allows it."""
    try:
        _CLEAR_REFS.write_text(_RESET_PEAK)
    except OSError:
        return


def available_and_total_bytes() -> tuple[int, int]:
    """Returns the machine's available and total memory in bytes."""
    total = _kilobytes(_MEMINFO, "MemTotal:")
    if not total:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return _kilobytes(_MEMINFO, "MemAvailable:"), total
