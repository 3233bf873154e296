"""Views, aliasing, in-place work and outputs: what the fallback must carry over to the device."""

import copy

import pytest
import torch


def test_in_place_work_returns_the_same_tensor(sim):
    x = torch.ones(3, device="sim")
    assert x.add_(1) is x
    assert torch.add(x, 1, out=x) is x
    assert x.tolist() == [3, 3, 3]
    assert x._version == 2


def test_views_share_memory_with_their_base(sim):
    x = torch.zeros(4, 4, device="sim")
    x[1].fill_(1)
    x.t()[0].add_(2)
    x.view(16)[15] = 7
    x.unfold(0, 2, 2)[0, 0, 0] = 9
    torch.as_strided(x, (2,), (5,), 5).mul_(3)
    x.diagonal().add_(0.5)
    expected = torch.zeros(4, 4)
    expected[1].fill_(1)
    expected.t()[0].add_(2)
    expected.view(16)[15] = 7
    expected.unfold(0, 2, 2)[0, 0, 0] = 9
    torch.as_strided(expected, (2,), (5,), 5).mul_(3)
    expected.diagonal().add_(0.5)
    assert torch.equal(x.cpu(), expected)
    assert x[1].data_ptr() == x.data_ptr() + 16


def test_complex_views(sim):
    x = torch.zeros(3, dtype=torch.complex64, device="sim")
    torch.view_as_real(x).fill_(1)
    x.imag.mul_(2)
    assert x.conj()[0].item() == 1 - 2j
    assert (x.conj() @ x).item() == 15
    assert torch.equal(x.conj().resolve_conj().cpu(), x.cpu().conj())


def test_outputs_are_resized(sim):
    out = torch.empty(0, device="sim")
    alias = out.detach()
    result = torch.add(torch.ones(2, 3, device="sim"), 1, out=out)
    assert result is out
    assert out.shape == (2, 3)
    assert out.sum().item() == 12
    assert alias.untyped_storage().nbytes() == out.untyped_storage().nbytes() == 24


def test_storages_can_be_freed_and_come_back(sim):
    x = torch.ones(4, device="sim")
    storage = x.untyped_storage()
    storage.resize_(0)
    assert storage.nbytes() == 0
    storage.resize_(16)
    assert x.fill_(3).sum().item() == 12
    storage.copy_(torch.zeros(4, device="sim").untyped_storage())
    assert x.sum().item() == 0
    assert storage.device.type == "sim"
    assert storage.cpu().device.type == "cpu"


def test_growing_a_storage_keeps_its_contents(sim):
    x = torch.arange(4.0, device="sim")
    x.resize_(8)
    assert x[:4].tolist() == [0, 1, 2, 3]
    y = torch.empty(0, device="sim").set_(x.untyped_storage(), 2, (2,), (1,))
    assert y.tolist() == [2, 3]


def test_inference_mode(sim):
    layer = torch.nn.Linear(3, 3).to("sim")
    with torch.inference_mode():
        y = layer(torch.ones(2, 3, device="sim"))
        assert y.is_inference()
        assert y[0].is_inference()
        assert not y.add_(1).requires_grad
    with pytest.raises(RuntimeError, match="inference"):
        y.add_(1)
    assert not layer(torch.ones(2, 3, device="sim")).is_inference()


def test_views_of_fresh_results_track_versions(sim):
    x = torch.zeros(4, 4, device="sim", requires_grad=True)
    y = x * 2
    y[1].add_(3)
    y.t()[0].mul_(2)
    y.sum().backward()
    assert x.grad[0, 0].item() == 4
    z = (x * x).exp()
    z[0].zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_lists_over_several_devices(sim):
    tensors = [torch.ones(2, device="sim"), torch.ones(3, device="sim:1")]
    added = torch._foreach_add(tensors, 1)
    assert [str(t.device) for t in added] == ["sim:0", "sim:1"]
    torch._foreach_copy_(tensors, [torch.zeros(2), torch.zeros(3)])
    assert sum(t.sum().item() for t in tensors) == 0


def test_deepcopy_has_its_own_memory(sim):
    module = torch.nn.Linear(2, 2).to("sim:1")
    twin = copy.deepcopy(module)
    assert twin.weight.device == module.weight.device
    assert twin.weight.data_ptr() != module.weight.data_ptr()
    assert torch.equal(twin.weight, module.weight)


def test_linear_algebra_and_transforms(sim):
    x = torch.randn(4, 4, device="sim")
    torch.testing.assert_close(torch.linalg.inv(x).cpu(), torch.linalg.inv(x.cpu()))
    torch.testing.assert_close(torch.fft.fft2(x).cpu(), torch.fft.fft2(x.cpu()))
    assert torch.linalg.svd(x).S.device.type == "sim"
    batched = torch.func.vmap(torch.func.grad(lambda row: (row**3).sum()))(x)
    torch.testing.assert_close(batched, 3 * x * x)
    assert torch.func.hessian(lambda v: (v**3).sum())(x[0]).shape == (4, 4)


def test_float16_products_accumulate_in_float32(sim):
    a = torch.full((1, 4096), 1.0, dtype=torch.float16, device="sim")
    b = torch.full((4096, 1), 0.1, dtype=torch.float16, device="sim")
    assert (a @ b).dtype == torch.float16
    assert (a @ b).item() == pytest.approx(4096 * 0.09998, rel=1e-3)


def test_views_cost_no_fallback(sim):
    from cuda_morph_sim.loader import native_module

    x = torch.ones(4, 4, device="sim")
    before = native_module().fallback_calls()
    x.view(16), x.t(), x[0], x.reshape(2, 8), x.unsqueeze(0), x.expand(2, 4, 4), x.detach()
    assert native_module().fallback_calls() == before
    x + x
    assert native_module().fallback_calls() == before + 1


def test_host_and_device_views_of_the_same_bytes(sim):
    x = torch.zeros(3, device="sim:1")
    host = torch.ops.cuda_morph_sim.as_host(x)
    host.fill_(4)
    assert host.device.type == "cpu"
    assert x.tolist() == [4, 4, 4]
    back = torch.ops.cuda_morph_sim.as_device(host, 1)
    del x, host
    assert back.device == torch.device("sim:1")
    assert back.sum().item() == 12
