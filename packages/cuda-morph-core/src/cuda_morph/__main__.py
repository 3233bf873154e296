"""``python -m cuda_morph``: the same as the ``cuda-morph`` command."""

from __future__ import annotations

import sys


def _start() -> int:
    path = [*sys.path]
    if not getattr(sys.flags, "safe_path", bool(sys.flags.isolated)):
        # Python has put the working directory first. It stays reachable, but a click.py in it
        # must not stand for the library, as it would not for the installed command.
        sys.path.append(sys.path.pop(0))
    from cuda_morph.cli.entry import main

    return main(path=path)


if __name__ == "__main__":
    sys.exit(_start())
