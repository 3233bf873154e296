import pytest
import torch


def test_sparse_coo(sim):
    host = torch.sparse_coo_tensor([[0, 1, 1], [1, 0, 0]], [3.0, 4.0, 5.0], (2, 2))
    made = torch.sparse_coo_tensor(host._indices(), host._values(), (2, 2), device="sim")
    moved = host.to("sim")
    for sparse in (made, moved):
        assert sparse.device == torch.device("sim:0")
        assert torch.equal(sparse.to_dense().cpu(), host.to_dense())
    assert moved.coalesce().values().device.type == "sim"
    assert torch.equal((moved + moved).to_dense().cpu(), 2 * host.to_dense())
    eye = torch.eye(2, device="sim")
    assert torch.equal((moved @ eye).cpu(), host.to_dense())
    assert torch.equal(moved.cpu().to_dense(), host.to_dense())
    assert eye.to_sparse().layout == torch.sparse_coo
    assert "sim:0" in repr(moved)


def test_sparse_values_share_memory(sim):
    sparse = torch.eye(3).to_sparse().to("sim").coalesce()
    sparse.values().mul_(5)
    assert sparse.to_dense().trace().item() == 15


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_csc])
def test_compressed_sparse(sim, layout):
    host = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    there = host.to("sim").to_sparse(layout=layout)
    assert there.layout == layout
    assert torch.equal(there.to_dense().cpu(), host)
    assert torch.equal((there @ torch.eye(2, device="sim")).cpu(), host)
    assert torch.equal(host.to_sparse(layout=layout).to("sim").cpu().to_dense(), host)


def test_gradients_of_a_sparse_product_that_keeps_extremes(python):
    """The kernel remembers where the extremes were only if it sees that a gradient is wanted."""
    program = """
import torch
from cuda_morph_sim.loader import load
load()
def gradients(device, reduce, needs):
    torch.manual_seed(0)
    rows = torch.randn(4, 5).relu().to_sparse_csr().to(device).requires_grad_(needs[0])
    columns = torch.randn(5, 3).to(device).requires_grad_(needs[1])
    torch.sparse.mm(rows, columns, reduce).sum().backward()
    found = [one.grad for one in (rows, columns) if one.requires_grad]
    return [one.to_dense().cpu() for one in found]
for reduce in ("amax", "amin", "mean"):
    for needs in ((True, True), (True, False), (False, True)):
        host, there = (gradients(device, reduce, needs) for device in ("cpu", "sim"))
        assert all(map(torch.equal, host, there)), (reduce, needs)
"""
    python(program)


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_tensors(sim, layout):
    parts = [torch.ones(2, 3), torch.ones(4, 3)]
    nested = torch.nested.nested_tensor(parts, layout=layout, device="sim")
    padded = (nested * 2).to_padded_tensor(0.0)
    assert padded.device.type == "sim"
    assert padded.shape == (2, 4, 3)
    assert padded.sum().item() == 36
