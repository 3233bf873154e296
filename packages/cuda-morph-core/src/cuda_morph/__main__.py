"""``python -m cuda_morph``: the same as the ``cuda-morph`` command."""

from __future__ import annotations

import sys

from cuda_morph.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
