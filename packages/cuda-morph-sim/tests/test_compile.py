import torch
from torch import nn
from torch._subclasses import FakeTensorMode


def test_fake_tensors_keep_the_device(sim):
    with FakeTensorMode():
        y = nn.Linear(3, 3, device="sim:1")(torch.ones(2, 3, device="sim:1"))
        assert y.device == torch.device("sim:1")
        assert y.shape == (2, 3)


def test_aot_eager_compiles_forward_and_backward(sim):
    @torch.compile(backend="aot_eager", fullgraph=True)
    def run(x):
        return (torch.zeros(3, device="sim") + x.to("sim")).relu().sum()

    x = torch.ones(3, device="sim", requires_grad=True)
    run(x).backward()
    assert x.grad.tolist() == [1, 1, 1]


def test_modules_compile(sim):
    module = nn.Sequential(nn.Linear(3, 3), nn.ReLU()).to("sim")
    x = torch.randn(2, 3, device="sim")
    torch.testing.assert_close(torch.compile(module, backend="aot_eager")(x), module(x))


def test_export(sim):
    module = nn.Linear(3, 3).to("sim")
    x = torch.ones(2, 3, device="sim")
    torch.testing.assert_close(torch.export.export(module, (x,)).module()(x), module(x))


def test_custom_operators(sim):
    @torch.library.custom_op("cuda_morph_sim_test::double", mutates_args=(), device_types="sim")
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @torch.library.custom_op("cuda_morph_sim_test::triple", mutates_args=(), device_types="cpu")
    def triple(x: torch.Tensor) -> torch.Tensor:
        assert x.device.type == "cpu"
        return x * 3

    x = torch.ones(3, device="sim")
    assert double(x).tolist() == [2, 2, 2]
    assert triple(x).device.type == "sim"
    assert triple(x).tolist() == [3, 3, 3]
