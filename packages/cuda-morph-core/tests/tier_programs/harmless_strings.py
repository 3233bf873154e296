"""The word ``cuda`` where no device is meant."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from world import raises


def check_parameter_names(world):
    model = torch.nn.Module()
    model.register_buffer("cuda_steps", torch.zeros(1))
    assert list(model.state_dict()) == ["cuda_steps"]


def check_profiler_labels(world):
    with torch.profiler.profile() as profile, torch.profiler.record_function("cuda:0"):
        torch.ones(1) + 1
    assert "cuda:0" in {event.key for event in profile.key_averages()}


def check_file_store_paths(world):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rendezvous_cuda_1"
        store = torch.distributed.FileStore(str(path), 1)
        store.set("cuda", "cuda:0")
        assert store.get("cuda") == b"cuda:0"
        assert path.is_file()


def check_script_modules_saved_to_such_paths(world):
    module = torch.jit.trace(torch.nn.Linear(2, 2), torch.ones(1, 2))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cuda"
        module.save(str(path))
        assert path.is_file()
        assert torch.jit.load(str(path))(torch.ones(1, 2)).shape == (1, 2)


def check_values_that_are_no_devices(world):
    raises(TypeError, torch.tensor, "cuda")
    raises(TypeError, torch.full, (2,), "cuda")


def check_other_devices_keep_working(world):
    assert torch.zeros(1, device="cpu").device.type == "cpu"
    assert torch.zeros(1, device="meta").device.type == "meta"
    assert torch.ones(1).to("meta").device.type == "meta"
    assert torch.Generator("cpu").device.type == "cpu"
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
