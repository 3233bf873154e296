"""Saving and loading, with every kind of ``map_location``."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path

import torch
from world import only, raises


def saved(value):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return buffer


def tagged(location):
    """A checkpoint whose tensor carries another machine's location, as a CUDA build writes it."""
    archive = saved({"w": torch.arange(3.0)})
    out = io.BytesIO()
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(out, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename.endswith("data.pkl"):
                assert data.count(CPU_TAG) == 1
                size = len(location).to_bytes(4, "little")
                data = data.replace(CPU_TAG, b"X" + size + location.encode())
            new.writestr(item.filename, data)
    out.seek(0)
    return out


CPU_TAG = b"X\x03\x00\x00\x00cpu"


def check_round_trip(world):
    value = {"w": torch.arange(3, device="cuda")}
    loaded = torch.load(saved(value))
    assert loaded["w"].device == world.device()
    assert loaded["w"].tolist() == [0, 1, 2]


def check_cuda_tags_load_onto_the_device(world):
    for location in ("cuda", "cuda:0"):
        loaded = torch.load(tagged(location))["w"]
        assert loaded.device == world.device(), location
        assert loaded.tolist() == [0, 1, 2]


@only(backends=("sim",))
def check_cuda_tags_keep_their_index(world):
    assert torch.load(tagged("cuda:1"))["w"].device == world.device(1)


def check_cuda_tags_of_missing_devices(world):
    message = raises(RuntimeError, torch.load, tagged("cuda:7"))
    assert "7" in message
    assert "map_location" in message


def check_cuda_tags_can_be_mapped_to_the_cpu(world):
    for location in ("cpu", torch.device("cpu"), {"cuda:7": "cpu"}, lambda storage, _tag: storage):
        assert torch.load(tagged("cuda:7"), map_location=location)["w"].device.type == "cpu"


def check_map_location_strings_and_devices(world):
    for location in ("cuda", "cuda:0", torch.device("cuda"), torch.device("cuda", 0)):
        loaded = torch.load(saved(torch.arange(3)), map_location=location)
        assert loaded.device == world.device(), location


@only(backends=("sim",))
def check_map_location_second_device(world):
    for location in ("cuda:1", torch.device("cuda:1"), {"cpu": "cuda:1"}):
        assert torch.load(saved(torch.ones(1)), map_location=location).device == world.device(1)


def check_map_location_dict(world):
    loaded = torch.load(tagged("cuda:0"), map_location={"cuda:0": "cpu"})["w"]
    assert loaded.device.type == "cpu"
    loaded = torch.load(saved(torch.ones(1)), map_location={"cpu": "cuda:0"})
    assert loaded.device == world.device()


def check_map_location_callable(world):
    seen = []

    def move(storage, tag):
        seen.append(tag)
        return storage.cuda()

    loaded = torch.load(saved(torch.arange(3)), map_location=move)
    assert (loaded.device, loaded.tolist()) == (world.device(), [0, 1, 2])
    assert seen == ["cpu"]


@only(backends=("sim",))
def check_saved_tag_follows_the_view(world):
    seen = []

    def note(storage, tag):
        seen.append(tag)
        return storage

    torch.load(saved(torch.ones(1, device="cuda:1")), map_location=note)
    assert seen == [world.text(1)]


def check_paths_with_the_word_in_them(world):
    with tempfile.TemporaryDirectory(prefix="cuda") as folder:
        path = str(Path(folder) / "my_cuda_model.pt")
        torch.save({"cuda": torch.ones(1, device="cuda")}, path)
        assert Path(path).is_file()
        assert list(torch.load(path, map_location="cuda")) == ["cuda"]


def check_relative_path_named_cuda(world):
    import os

    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            torch.save(torch.ones(1), "cuda:0")
            assert Path("cuda:0").is_file()
            assert torch.load("cuda:0").tolist() == [1]
        finally:
            os.chdir(before)


def check_module_state(world):
    model = torch.nn.Linear(2, 2).cuda()
    twin = torch.nn.Linear(2, 2).cuda()
    twin.load_state_dict(torch.load(saved(model.state_dict()), map_location="cuda"))
    assert torch.equal(twin.weight, model.weight)


def check_optimizer_state(world):
    model = torch.nn.Linear(2, 2).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2, device="cuda")).sum().backward()
    optimizer.step()
    state = torch.load(saved(optimizer.state_dict()), map_location="cuda:0")
    optimizer.load_state_dict(state)
    assert optimizer.state[model.weight]["exp_avg"].device == world.device()


def check_safe_loading_of_devices(world):
    loaded = torch.load(saved({"device": torch.device("cuda:0")}), weights_only=True)
    assert loaded["device"] == torch.device("cuda:0")
