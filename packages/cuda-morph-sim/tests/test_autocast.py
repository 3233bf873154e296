import pytest
import torch
from torch import nn

LOW = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("low", LOW)
def test_results_have_the_dtypes_of_cudas_lists(sim, low):
    a = torch.randn(4, 4, device="sim")
    with torch.autocast("sim", dtype=low):
        assert torch.is_autocast_enabled("sim")
        product = a @ a
        assert product.dtype == low
        assert nn.functional.linear(a, a).dtype == low
        assert nn.functional.softmax(product, -1).dtype == torch.float32
        assert torch.exp(product).dtype == torch.float32
        assert product.sum().dtype == torch.float32
        assert product.norm().dtype == torch.float32
        assert torch.addcmul(a, product, product).dtype == torch.float32
        assert torch.cat([a, product]).dtype == torch.float32
        assert (a + a).dtype == torch.float32
        assert (a.double() @ a.double()).dtype == torch.float64
        assert product.sum(dtype=torch.float64).dtype == torch.float64
        with torch.autocast("sim", enabled=False):
            assert (a @ a).dtype == torch.float32
    assert (a @ a).dtype == torch.float32


def test_other_devices_are_left_alone(sim):
    with torch.autocast("sim", dtype=torch.bfloat16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        x = torch.ones(2, 2, device="sim")
        assert (x @ x).dtype == torch.float32


def test_weights_are_cast_once_per_region(sim):
    layer = nn.Linear(64, 64).to("sim")
    x = torch.randn(2, 64, device="sim")
    peaks = []
    for enabled in (True, False):
        with torch.autocast("sim", dtype=torch.bfloat16, cache_enabled=enabled):
            before = sim.memory_stats()["allocation.all.allocated"]
            for _ in range(10):
                layer(x)
            peaks.append(sim.memory_stats()["allocation.all.allocated"] - before)
    assert peaks[0] < peaks[1]


def test_recurrent_networks_autocast(sim):
    lstm = nn.LSTM(4, 4).to("sim")
    with torch.autocast("sim", dtype=torch.bfloat16):
        assert lstm(torch.randn(2, 3, 4, device="sim"))[0].dtype == torch.bfloat16


def test_unsafe_loss_is_refused(sim):
    p = torch.full((3,), 0.5, device="sim")
    with (
        torch.autocast("sim", dtype=torch.float16),
        pytest.raises(RuntimeError, match="unsafe to autocast"),
    ):
        nn.functional.binary_cross_entropy(p, p)


def test_grad_scaler_steps_and_skips(sim):
    layer = nn.Linear(4, 4).to("sim")
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    scaler = torch.amp.GradScaler("sim")
    with torch.autocast("sim", dtype=torch.float16):
        loss = layer(torch.randn(2, 4, device="sim")).pow(2).mean()
    scaler.scale(loss).backward()
    before = layer.weight.detach().clone()
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(layer.weight, before)
    scale, before = scaler.get_scale(), layer.weight.detach().clone()
    layer.weight.grad.fill_(float("inf"))
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(layer.weight, before), "a step with infinite gradients was taken"
    assert scaler.get_scale() < scale
