import pytest
import torch

MIB = 1 << 20


@pytest.fixture
def fresh(sim):
    """Statistics of the first device before the test's own tensors."""
    import gc

    gc.collect()
    sim.empty_cache()
    sim.reset_peak_memory_stats()
    return sim.memory_allocated()


def test_allocations_are_counted_in_steps_of_512_bytes(sim, fresh):
    one = torch.empty(1, device="sim")
    assert sim.memory_allocated() - fresh == 512
    two = torch.empty(129, device="sim")
    assert sim.memory_allocated() - fresh == 512 + 1024
    assert sim.memory_stats()["requested_bytes.all.current"] >= 4 + 129 * 4
    del one, two
    assert sim.memory_allocated() == fresh


def test_results_of_operators_are_counted_and_given_back(sim, fresh):
    a = torch.ones(1000, device="sim")
    b = a + 1
    views = [b[1:], b.view(10, 100), b.t() if b.dim() == 2 else b]
    assert sim.memory_allocated() - fresh == 2 * 4096
    del a, b, views
    assert sim.memory_allocated() == fresh


def test_a_view_keeps_the_whole_storage(sim, fresh):
    view = torch.ones(1000, device="sim")[:1]
    assert sim.memory_allocated() - fresh == 4096
    assert view.item() == 1


def test_an_output_that_an_operator_resizes_is_counted_again(sim, fresh):
    out = torch.empty(0, device="sim")
    torch.arange(1000, device="sim", dtype=torch.float32, out=out)
    assert sim.memory_allocated() - fresh == 4096
    assert out.sum().item() == 499500
    out.untyped_storage().resize_(0)
    assert sim.memory_allocated() == fresh


def test_each_device_has_its_own_books(sim, fresh):
    before = sim.memory_allocated(1)
    keep = torch.empty(MIB, dtype=torch.uint8, device="sim:1")
    assert sim.memory_allocated("sim:1") - before == MIB
    assert sim.memory_allocated() == fresh
    assert keep.device.index == 1


def test_the_peak_is_kept_until_it_is_reset(sim, fresh):
    torch.empty(4 * MIB, dtype=torch.uint8, device="sim")
    assert sim.memory_allocated() == fresh
    assert sim.max_memory_allocated() == fresh + 4 * MIB
    sim.reset_peak_memory_stats()
    assert sim.max_memory_allocated() == fresh


def test_reserved_memory_stays_until_the_cache_is_emptied(sim, fresh):
    reserved = sim.memory_reserved()
    torch.empty(64 * MIB, dtype=torch.uint8, device="sim")
    assert sim.memory_reserved() >= reserved + 64 * MIB
    assert sim.max_memory_reserved() >= sim.memory_reserved()
    free, total = sim.mem_get_info()
    sim.empty_cache()
    assert sim.memory_reserved() <= reserved
    assert sim.mem_get_info()[0] > free
    assert sim.mem_get_info()[1] == total


def test_statistics_have_cudas_keys(sim):
    stats = sim.memory_stats()
    for name in ("allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes"):
        for pool in ("all", "small_pool", "large_pool"):
            for moment in ("current", "peak", "allocated", "freed"):
                assert f"{name}.{pool}.{moment}" in stats
    for name in ("num_ooms", "num_alloc_retries", "num_device_alloc", "num_device_free"):
        assert name in stats
    assert list(stats) == sorted(stats)
    assert stats["allocated_bytes.all.current"] == sim.memory_allocated()


def test_the_running_totals_can_be_reset(sim, fresh):
    torch.empty(1, device="sim")
    assert sim.memory_stats()["allocation.all.allocated"] > 0
    sim.reset_accumulated_memory_stats()
    assert sim.memory_stats()["allocation.all.allocated"] == 0


def test_the_accelerator_interface_sees_the_same_books(sim):
    keep = torch.empty(1000, device="sim")
    assert torch.accelerator.memory_allocated() == sim.memory_allocated()
    assert torch.accelerator.memory_stats()["allocated_bytes.all.current"] == (
        sim.memory_allocated()
    )
    assert torch.accelerator.get_memory_info() == sim.mem_get_info()
    assert keep.numel() == 1000


def test_the_limit_is_a_real_out_of_memory_error(sim, fresh, limit):
    limit(fresh + 8 * MIB)
    ooms = sim.memory_stats()["num_ooms"]
    with pytest.raises(torch.OutOfMemoryError) as error:
        torch.empty(64 * MIB, dtype=torch.uint8, device="sim")
    text = str(error.value)
    assert text.startswith("SIM out of memory. Tried to allocate 64.00 MiB. GPU 0 ")
    assert "simulated device sim:0" in text
    assert sim.memory_stats()["num_ooms"] == ooms + 1
    assert torch.ones(10, device="sim").sum().item() == 10, "work goes on after the error"


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(64 * MIB, device="sim"),
        lambda: torch.randn(64 * MIB, device="sim"),
        lambda: torch.ones(4096, 1, device="sim") + torch.ones(1, 4096, device="sim"),
        lambda: torch.zeros(64 * MIB, dtype=torch.uint8).to("sim"),
        lambda: torch.empty(1, device="sim").resize_(64 * MIB),
        lambda: torch.UntypedStorage(64 * MIB, device="sim"),
        lambda: torch.ones(1, device="sim").expand(64 * MIB).clone(),
    ],
    ids=["ones", "randn", "broadcast", "to", "resize", "storage", "clone"],
)
def test_every_way_to_get_memory_is_limited(sim, fresh, limit, make):
    limit(fresh + 8 * MIB)
    with pytest.raises(torch.OutOfMemoryError, match="out of memory"):
        make()
    assert sim.memory_allocated() == fresh, "a refused allocation is not counted"


def test_memory_that_the_host_lacks_is_the_devices_error(sim, limit):
    limit(1 << 50)
    with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate 16384\.00 GiB"):
        torch.ones(1 << 20, 1, device="sim") + torch.ones(1, 1 << 22, device="sim")


def test_a_share_of_the_memory_can_be_set(sim, fresh):
    total = sim.mem_get_info()[1]
    sim.set_per_process_memory_fraction((fresh + 8 * MIB) / total)
    try:
        with pytest.raises(torch.OutOfMemoryError, match="allowed"):
            torch.empty(64 * MIB, dtype=torch.uint8, device="sim")
        assert sim.mem_get_info()[1] == total
    finally:
        sim.set_per_process_memory_fraction(1.0)
    torch.empty(64 * MIB, dtype=torch.uint8, device="sim")
    with pytest.raises(ValueError, match="fraction"):
        sim.set_per_process_memory_fraction(1.5)


def test_reading_a_counter_takes_less_than_200_ns(sim):
    import timeit

    timer = timeit.Timer(sim.memory_allocated)
    assert min(timer.repeat(20, 2000)) / 2000 < 200e-9


def test_device_arguments_are_those_of_cuda(sim):
    expected = sim.memory_allocated(1)
    for device in (1, "sim:1", torch.device("sim", 1)):
        assert sim.memory_allocated(device) == expected
    assert sim.memory_allocated(device=1) == expected
    with pytest.raises(ValueError, match="Expected a sim device, but got: cpu"):
        sim.memory_allocated("cpu")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        sim.memory_allocated(9)
    with pytest.raises(TypeError):
        sim.memory_allocated(dev=1)
    with pytest.raises(TypeError):
        sim.memory_allocated(1.5)
