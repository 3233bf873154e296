import pytest

DEVICES = ["cpu", "cuda"]  # >> CM101


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])  # >> CM101
def test_it(device):
    for device in ("cpu", "cuda"):  # >> CM101
        print(device)
