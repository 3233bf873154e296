"""What `trace="counts"` counts: also what reaches the accelerator without torch.cuda's functions."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json
import torch, cuda_morph
from cuda_morph.errors import TierError
plain = vars(torch.Tensor).get("cuda"), torch.nn.Module.cuda.__code__
try:
    activation = cuda_morph.activate("cpu", trace="counts")
except TierError:
    print("null")
    raise SystemExit
torch.zeros(2, device="cuda:0")
torch.ones(2).cuda()
torch.nn.Linear(2, 2).cuda()
compiled = torch.compile(lambda x: x.cuda() + 1, backend="eager", fullgraph=True)
assert compiled(torch.ones(2)).tolist() == [2, 2]
usage = {name: calls for name, _, calls in activation.usage()}
cuda_morph.deactivate()
assert plain == (vars(torch.Tensor).get("cuda"), torch.nn.Module.cuda.__code__)
with cuda_morph.activate("cpu", trace=True):
    compiled = torch.compile(lambda x: x.cuda() - 1, backend="eager", fullgraph=True)
    assert compiled(torch.ones(2)).tolist() == [0, 0]
with cuda_morph.activate("cpu") as activation:
    torch.ones(2).cuda()
    assert activation.usage() == ()
print(json.dumps(usage))
"""


@pytest.mark.parametrize("tier", ["T0", "T1", "T3"])
def test_spellings_without_a_function_of_torch_cuda_are_counted(tier):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CUDA_MORPH_TIER": tier},
    )
    assert done.returncode == 0, done.stderr
    usage = json.loads(done.stdout.splitlines()[-1])
    if usage is None:
        pytest.skip(f"tier {tier} does not work here")
    assert usage["torch.nn.Module.cuda"] == 1
    assert usage["torch.Tensor.cuda"] >= 3, "once by itself, and for two parameters"
    assert ("device strings" in usage) == (tier == "T0")
