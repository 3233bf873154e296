"""Tensors on their way in and out of the device and the process."""

import io
import pickle

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset


def saved(value):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return buffer


def test_save_and_load_keep_device_and_sharing(sim):
    x = torch.randn(3, device="sim:1")
    found = torch.load(saved({"x": x, "tail": x[1:]}), weights_only=True)
    assert found["x"].device == torch.device("sim:1")
    assert torch.equal(found["x"], x)
    found["x"][1] = 5
    assert found["tail"][0].item() == 5


@pytest.mark.parametrize("where", ["cpu", "sim:0", "sim:1"])
def test_map_location(sim, where):
    found = torch.load(saved(torch.ones(3, device="sim")), map_location=where)
    assert found.device == torch.device(where)
    assert torch.load(saved(torch.ones(3)), map_location="sim").device.type == "sim"


def test_state_dicts_move_between_devices(sim):
    module = torch.nn.Linear(2, 2).to("sim")
    other = torch.nn.Linear(2, 2)
    other.load_state_dict(torch.load(saved(module.state_dict())))
    assert torch.equal(other.weight, module.weight.cpu())


def test_pickle_and_share_memory(sim):
    x = torch.ones(3, device="sim")
    assert torch.equal(pickle.loads(pickle.dumps(x)), x)
    assert x.share_memory_() is x
    assert x.is_shared()


def test_pinned_memory_knows_itself(sim):
    x = torch.arange(4.0).pin_memory()
    assert x.is_pinned()
    assert x[2:].is_pinned()
    assert torch.from_numpy(x.numpy()[2:]).is_pinned(), "any address inside counts"
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert not torch.ones(3).is_pinned()
    there = x.to("sim", non_blocking=True)
    assert not there.is_pinned()
    assert torch.equal(there.cpu(), x)


def test_forked_workers_and_pinning(sim):
    dataset = TensorDataset(torch.arange(8.0))
    seen = []
    for (batch,) in DataLoader(dataset, batch_size=2, num_workers=2, pin_memory=True):
        assert batch.is_pinned()
        seen += batch.to("sim", non_blocking=True).tolist()
    assert seen == list(range(8))


def test_spawned_workers(python):
    python(
        "import torch\n"
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "import cuda_morph_sim.device\n"
        "data = TensorDataset(torch.arange(4.0))\n"
        "loader = DataLoader(data, num_workers=1, multiprocessing_context='spawn')\n"
        "assert [b.to('sim').item() for (b,) in loader] == [0, 1, 2, 3]\n"
    )


def test_dlpack_capsules(sim):
    from torch.utils.dlpack import from_dlpack, to_dlpack

    x = torch.arange(3.0, device="sim")
    y = from_dlpack(to_dlpack(x))
    assert y.device == x.device
    y[0] = 7
    assert x[0].item() == 7
    assert (y + 1).sum().item() == 13
    del x
    assert y[0].item() == 7


def test_meta_and_empty_modules(sim):
    layer = torch.nn.Linear(3, 3, device="meta").to_empty(device="sim")
    assert layer.weight.device.type == "sim"
    assert torch.empty(3, device="sim").to("meta").device.type == "meta"


def test_scripted_modules_load_to_the_device(sim):
    scripted = torch.jit.script(torch.nn.Linear(3, 3).to("sim"))
    buffer = io.BytesIO()
    torch.jit.save(scripted, buffer)
    buffer.seek(0)
    loaded = torch.jit.load(buffer, map_location="sim:1")
    assert loaded(torch.ones(1, 3, device="sim:1")).device.index == 1


def test_profiler_records_operators(sim):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as recorded:
        torch.ones(10, device="sim") + 1
    assert "aten::add" in {event.key for event in recorded.key_averages()}
