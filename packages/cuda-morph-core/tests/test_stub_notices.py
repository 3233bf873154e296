"""The warning of a stub points at the program's line, whatever stands between."""

import json
import os
import subprocess
import sys

PROGRAM = """
import json, warnings
import torch, cuda_morph
places = {}
for trace in (False, "counts", True):
    with cuda_morph.activate("cpu", trace=trace), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_per_process_memory_fraction(0.5)
        torch.cuda.cudart().cudaProfilerStart()
        torch.cuda.memory._record_memory_history()
        torch.cuda.tunable.enable(True)
    places[str(trace)] = [(item.filename, item.lineno) for item in caught]
print(json.dumps(places))
"""


def test_notice_names_the_line_that_called(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "CUDA_MORPH_TIER": "T3"},
    )
    found = json.loads(done.stdout.splitlines()[-1])
    lines = [[str(program), line] for line in (8, 9, 10, 11)]
    assert found == dict.fromkeys(("False", "counts", "True"), lines)
