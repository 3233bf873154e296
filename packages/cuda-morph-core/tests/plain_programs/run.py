"""Runs every snippet and prints its result as JSON; activates first when told to.

Usage: run.py                      without cuda-morph
       run.py BACKEND VIEW TIER    with it
"""

import json
import os
import sys
import warnings

warnings.simplefilter("ignore")


def main() -> None:
    if len(sys.argv) > 1:
        backend, view, os.environ["CUDA_MORPH_TIER"] = sys.argv[1:4]
        import cuda_morph

        cuda_morph.activate(backend, view=view)
    from snippets import SNIPPETS

    results = {}
    for snippet in SNIPPETS:
        try:
            results[snippet.__name__] = repr(snippet())
        except Exception as error:
            results[snippet.__name__] = f"raised {type(error).__name__}: {error}"
    print("RESULTS" + json.dumps(results))


if __name__ == "__main__":
    main()
