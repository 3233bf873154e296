import time
from pathlib import Path

import pytest

from cuda_morph.records import Backend, Detection, DeviceMapping
from cuda_morph_sim import plugin


def test_the_plugin_imports_neither_torch_nor_the_device(python):
    python(
        "import sys\n"
        "import cuda_morph_sim.plugin as plugin\n"
        "plugin.cuda_morph_backend(); plugin.cuda_morph_detect()\n"
        "plugin.cuda_morph_device_mapping(); plugin.cuda_morph_capabilities()\n"
        "bad = [m for m in ('torch', 'numpy', 'cuda_morph_sim._native') if m in sys.modules]\n"
        "assert not bad, bad\n"
    )


def test_the_backend_is_simulated():
    backend = plugin.cuda_morph_backend()
    assert isinstance(backend, Backend)
    assert (backend.name, backend.device_type, backend.simulated) == ("sim", "sim", True)
    assert backend.adapter_module == "cuda_morph_sim.device"


def test_detection_is_fast_and_counts_devices(monkeypatch):
    monkeypatch.setenv("CUDA_MORPH_SIM_DEVICES", "5")
    plugin.cuda_morph_detect()
    start = time.perf_counter()
    found = plugin.cuda_morph_detect()
    assert time.perf_counter() - start < 0.1
    assert isinstance(found, Detection)
    assert found.available
    assert found.device_count == 5


def test_detection_says_why_not(monkeypatch, tmp_path):
    # Other tests of this process may have loaded the device, which is then there for good.
    monkeypatch.setattr(plugin, "_is_loaded", lambda: False)
    monkeypatch.setenv("CUDA_MORPH_SIM_CACHE", str(tmp_path))
    monkeypatch.setenv("CXX", "/nowhere/g++")
    found = plugin.cuda_morph_detect()
    assert not found.available
    assert "compiler" in found.reason
    assert "g++" in found.details["advice"]


def test_detection_survives_bad_settings(monkeypatch):
    monkeypatch.setenv("CUDA_MORPH_SIM_MEMORY", "much")
    found = plugin.cuda_morph_detect()
    assert not found.available
    assert "CUDA_MORPH_SIM_MEMORY" in found.reason


def test_the_mapping_loads_the_device(sim):
    mapping = plugin.cuda_morph_device_mapping()
    assert isinstance(mapping, DeviceMapping)
    assert (mapping.target, mapping.module) == ("sim", "torch.sim")
    assert mapping.compute_capability == (8, 0)
    assert mapping.init() is sim


def test_claims_are_of_the_closed_list():
    capabilities = pytest.importorskip("cuda_morph.capabilities")
    known = set(capabilities.CAPABILITIES)
    claimed = [claim.id for claim in plugin.cuda_morph_capabilities()]
    assert set(claimed) <= known
    assert len(claimed) == len(set(claimed))


def test_sources_are_package_data():
    folder = Path(plugin.__file__).parent / "csrc"
    assert {path.suffix for path in folder.iterdir()} == {".cpp", ".h"}


def test_activating_again_reads_no_source(python):
    python(
        "import sys\n"
        "import cuda_morph\n"
        "cuda_morph.activate('sim'); cuda_morph.deactivate()\n"
        "seen = []\n"
        "sys.addaudithook(lambda event, args: event == 'open' and seen.append(str(args[0])))\n"
        "cuda_morph.activate('sim')\n"
        "assert not [name for name in seen if 'csrc' in name], seen\n"
    )
