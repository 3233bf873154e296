import pytest
import torch
from torch.nn import functional

MIXED = {
    "add": lambda d, c: d + c,
    "add_reversed": lambda d, c: c + d,
    "in_place": lambda d, c: d.add_(c),
    "in_place_on_cpu": lambda d, c: c.add_(d),
    "scalar_on_cpu_written": lambda d, c: torch.ones(()).add_(d[0, 0]),
    "mm": lambda d, c: d @ c,
    "linear": functional.linear,
    "linear_module": lambda d, c: torch.nn.Linear(3, 3).to("sim")(c),
    "cat": lambda d, c: torch.cat([d, c]),
    "stack": lambda d, c: torch.stack([d, c]),
    "where": lambda d, c: torch.where(d > 0, c, d),
    "index_select": lambda d, c: d.index_select(0, torch.tensor([0])),
    "gather": lambda d, c: d.gather(0, torch.zeros(3, 3, dtype=torch.long)),
    "embedding": lambda d, c: functional.embedding(torch.tensor([0]), d),
    "cross_entropy": lambda d, c: functional.cross_entropy(d, torch.tensor([0, 1, 2])),
    "batch_norm": lambda d, c: functional.batch_norm(d, c[0], c[1]),
    "conv": lambda d, c: functional.conv2d(d[None, None], c[None, None]),
    "out": lambda d, c: torch.add(d, d, out=torch.empty(3, 3)),
    "equal": torch.equal,
    "other_device": lambda d, c: d + torch.ones(3, 3, device="sim:1"),
}


@pytest.mark.parametrize("name", MIXED)
def test_mixing_devices_raises_as_on_cuda(sim, name):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        MIXED[name](torch.ones(3, 3, device="sim"), torch.ones(3, 3))


def test_the_message_names_both_devices_and_the_argument(sim):
    with pytest.raises(RuntimeError) as error:
        torch.ones(3, device="sim:1") + torch.ones(3)
    assert str(error.value).startswith(
        "Expected all tensors to be on the same device, but found at least two devices, "
        "sim:1 and cpu! (when checking argument for argument other"
    )
    with pytest.raises(RuntimeError, match="two devices, sim:0 and sim:1!"):
        torch.ones(3, device="sim") + torch.ones(3, device="sim:1")


def test_indexing_the_cpu_with_device_indices_raises(sim):
    with pytest.raises(RuntimeError, match="indices should be either on cpu or on the same"):
        torch.arange(3)[torch.tensor([1], device="sim")]


ALLOWED = {
    "scalar": lambda d: d + torch.tensor(2.0),
    "scalar_first": lambda d: torch.tensor(2.0) - d,
    "scalar_where": lambda d: torch.where(d > 0, d, torch.tensor(0.0)),
    "scalar_fill": lambda d: d.masked_fill(d > 0, torch.tensor(5.0)),
    "cpu_index": lambda d: d[torch.tensor([0, 2])],
    "cpu_mask": lambda d: d[torch.tensor([True, False, True])],
    "cpu_index_write": lambda d: d.index_put_((torch.tensor([1]),), torch.tensor(3.0)),
    "copy_from_cpu": lambda d: d.copy_(torch.zeros(3)),
    "copy_to_other": lambda d: torch.zeros(3, device="sim").copy_(torch.ones(3, device="sim:1")),
    "new_tensor": lambda d: d.new_tensor([1, 2]),
    "bernoulli": lambda d: torch.zeros(3, device="sim").bernoulli_(torch.ones(3)),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_cuda_allows_works(sim, name):
    assert ALLOWED[name](torch.arange(3.0, device="sim")).device.type == "sim"


def test_copies_go_everywhere(sim):
    source = torch.arange(6.0).view(2, 3)
    there = source.to("sim:1")
    assert there.to("sim:0").to("cpu").equal(source)
    assert torch.zeros(2, 3).copy_(there).equal(source)
    assert there.t().cpu().equal(source.t())
    assert torch.zeros(2, 2, 3, device="sim").copy_(there).cpu().equal(source.expand(2, 2, 3))


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.empty(2, device="sim:7"),
        lambda: torch.arange(3, device="sim:7"),
        lambda: torch.eye(3, device="sim:7"),
        lambda: torch.ones(3).to("sim:7"),
        lambda: torch.Generator(device="sim:7"),
        lambda: torch.sim.set_device(7),
        lambda: torch.sim.set_device("sim:7"),
        lambda: torch.accelerator.set_device_index(7),
        lambda: torch.sim.get_device_properties(7),
    ],
)
def test_a_device_that_does_not_exist_raises(sim, make):
    before = sim.current_device()
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        make()
    assert sim.current_device() == before


def test_a_bad_ordinal_is_an_accelerator_error(sim):
    with pytest.raises(torch.AcceleratorError, match="SIM error: invalid device ordinal"):
        torch.empty(1, device="sim:9")
    with pytest.raises(torch.AcceleratorError):
        sim.set_device(9)


def test_only_cpu_memory_is_pinned(sim):
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        torch.empty(3, device="sim", pin_memory=True)


def test_numpy_asks_for_a_copy(sim):
    with pytest.raises(TypeError, match=r"Use Tensor\.cpu\(\)"):
        torch.ones(3, device="sim").numpy()


def test_an_operator_without_a_cpu_kernel_names_the_device(sim):
    torch.library.define("cuda_morph_sim_test::nowhere", "(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="simulated device sim"):
        torch.ops.cuda_morph_sim_test.nowhere(torch.ones(3, device="sim"))


def test_other_kinds_of_tensor_are_refused_by_name(sim):
    with pytest.raises(NotImplementedError, match="dense, sparse and nested tensors"):
        torch.quantize_per_tensor(torch.ones(3, device="sim"), 0.1, 0, torch.qint8)
