import pytest
import torch

CUDA_NAMES = [
    "is_available",
    "device_count",
    "current_device",
    "set_device",
    "device",
    "device_of",
    "synchronize",
    "current_stream",
    "default_stream",
    "set_stream",
    "stream",
    "Stream",
    "Event",
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "reset_accumulated_memory_stats",
    "mem_get_info",
    "empty_cache",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "initial_seed",
    "get_rng_state",
    "set_rng_state",
    "get_rng_state_all",
    "set_rng_state_all",
    "default_generators",
    "get_device_properties",
    "get_device_name",
    "get_device_capability",
    "is_bf16_supported",
    "get_amp_supported_dtype",
    "init",
    "_lazy_init",
    "is_initialized",
    "_is_in_bad_fork",
    "_exchange_device",
    "_maybe_exchange_device",
    "set_memory_limit",
    "set_per_process_memory_fraction",
    "register_collectives",
]


@pytest.mark.parametrize("name", CUDA_NAMES)
def test_the_module_offers(sim, name):
    assert hasattr(sim, name)


def test_the_device_is_torchs_accelerator(sim):
    assert sim.is_available()
    assert sim.is_initialized()
    assert not sim._is_in_bad_fork()
    assert torch.accelerator.current_accelerator().type == "sim"
    assert torch.accelerator.device_count() == sim.device_count()
    assert torch.get_device_module("sim") is sim


def test_the_current_device_decides_where_tensors_go(sim):
    sim.set_device(1)
    try:
        assert sim.current_device() == 1 == torch.accelerator.current_device_index()
        assert torch.zeros(1, device="sim").device == torch.device("sim:1")
        assert torch.arange(3, device="sim").device.index == 1
        assert torch.randn(2, device="sim").device.index == 1
    finally:
        sim.set_device(torch.device("sim", 0))
    assert sim.current_device() == 0


def test_each_thread_has_its_own_current_device(sim):
    from concurrent.futures import ThreadPoolExecutor

    def elsewhere():
        before = sim.current_device()
        sim.set_device(1)
        return before, torch.zeros(1, device="sim").device.index

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(elsewhere).result() == (0, 1)
    assert sim.current_device() == 0


def test_exchange_follows_cudas_rules(sim):
    assert sim._exchange_device(1) == 0
    assert sim._exchange_device(-1) == -1
    assert sim.current_device() == 1
    assert sim._maybe_exchange_device(0) == 1
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        sim._exchange_device(9)


def test_properties_have_cudas_fields(sim):
    properties = sim.get_device_properties("sim:1")
    assert properties.name == sim.get_device_name() == "cuda-morph simulated accelerator"
    assert (properties.major, properties.minor) == sim.get_device_capability() == (8, 0)
    assert properties.total_memory == sim.mem_get_info(1)[1]
    assert properties.warp_size == 32
    assert properties.uuid != sim.get_device_properties(0).uuid
    for field in ("multi_processor_count", "max_threads_per_multi_processor", "L2_cache_size"):
        assert getattr(properties, field) > 0
    with pytest.raises(ValueError, match="Expected a sim device"):
        sim.get_device_name("cpu")


def test_bfloat16_and_autocast_dtypes(sim):
    assert sim.is_bf16_supported()
    assert sim.get_amp_supported_dtype() == [torch.float16, torch.bfloat16]


def test_the_device_capability_lists_dtypes(sim):
    assert torch.float32 in torch.accelerator.get_device_capability()["supported_dtypes"]
