import pytest


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.slow)])  # >> CM101
def test_one(device): ...


@pytest.mark.parametrize(
    "size, device",
    [
        (1, "cpu"),
        (2, "cuda:0"),  # >> CM101
        pytest.param(3, "cuda", marks=pytest.mark.slow),  # >> CM101
        ("cuda", "cpu"),
    ],
)
def test_two(size, device): ...


@pytest.mark.parametrize(["device_from", "device_to"], [("cpu", "cuda")])  # >> CM101
def test_three(device_from, device_to): ...


@pytest.fixture(params=["cpu", "cuda"])  # >> CM101
def available_device(request): ...


@pytest.fixture(params=["cuda", "rocm"])
def product(request): ...


@pytest.mark.parametrize("product", ["cuda", "rocm"])
def test_four(product): ...


available_devices_list = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.slow),  # >> CM101
]
