import pytest
import torch


def test_device_context_restores_what_was_current(sim):
    with sim.device(1):
        assert sim.current_device() == 1
        with sim.device("sim:0"):
            assert sim.current_device() == 0
        assert sim.current_device() == 1
    assert sim.current_device() == 0


def test_device_context_restores_after_an_error(sim):
    with pytest.raises(KeyError), sim.device(1):
        raise KeyError
    assert sim.current_device() == 0


@pytest.mark.parametrize("nothing", [None, -1])
def test_no_device_changes_nothing(sim, nothing):
    with sim.device(1), sim.device(nothing):
        assert sim.current_device() == 1


def test_device_of_a_tensor(sim):
    with sim.device_of(torch.zeros(1, device="sim:1")):
        assert sim.current_device() == 1
    with sim.device_of(torch.zeros(1)):
        assert sim.current_device() == 0


def test_torchs_own_contexts(sim):
    with torch.device("sim"):
        assert torch.zeros(1).device.type == "sim"
        assert torch.nn.Linear(2, 2).weight.device.type == "sim"
    with torch.accelerator.device_index(1):
        assert sim.current_device() == 1
    torch.set_default_device("sim:1")
    try:
        assert torch.ones(1).device.index == 1
    finally:
        torch.set_default_device(None)
