import pytest

from cuda_morph.errors import SettingError
from cuda_morph_sim import settings


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    for name in (
        settings.DEVICES_VARIABLE,
        settings.MEMORY_VARIABLE,
        settings.DEBUG_VARIABLE,
        settings.CACHE_VARIABLE,
    ):
        monkeypatch.delenv(name, raising=False)


def test_defaults_are_two_devices_within_the_hosts_memory():
    found = settings.read_settings()
    assert found.devices == 2
    assert 0 < found.memory <= 16 << 30
    assert not found.guarded


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1024", 1024),
        ("512MiB", 512 << 20),
        ("16GiB", 16 << 30),
        ("1.5 GB", 3 << 29),
        ("2k", 2048),
        ("1t", 1 << 40),
        ("", None),
    ],
)
def test_memory_takes_bytes_and_units(monkeypatch, text, size):
    monkeypatch.setenv(settings.MEMORY_VARIABLE, text)
    assert settings.read_settings().memory == (size or min(16 << 30, settings._host_memory()))


@pytest.mark.parametrize("text", ["lots", "-1", "0", "16 XB", "1e400", "GiB"])
def test_bad_memory_names_the_variable(monkeypatch, text):
    monkeypatch.setenv(settings.MEMORY_VARIABLE, text)
    with pytest.raises(SettingError, match="CUDA_MORPH_SIM_MEMORY") as error:
        settings.read_settings()
    assert error.value.code == "CM-E06"
    assert "16GiB" in error.value.hint


@pytest.mark.parametrize("text", ["0", "65", "-2", "two", "1.5", "²"])
def test_bad_device_count_names_the_variable(monkeypatch, text):
    monkeypatch.setenv(settings.DEVICES_VARIABLE, text)
    with pytest.raises(SettingError, match="CUDA_MORPH_SIM_DEVICES"):
        settings.read_settings()


def test_debug_is_yes_or_no(monkeypatch):
    monkeypatch.setenv(settings.DEBUG_VARIABLE, "on")
    assert settings.read_settings().guarded
    monkeypatch.setenv(settings.DEBUG_VARIABLE, "perhaps")
    with pytest.raises(SettingError, match="CUDA_MORPH_SIM_DEBUG"):
        settings.read_settings()


def test_cache_folder_can_be_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv(settings.CACHE_VARIABLE, str(tmp_path))
    assert settings.cache_folder() == tmp_path
    monkeypatch.delenv(settings.CACHE_VARIABLE)
    assert settings.cache_folder().parts[-2:] == ("cuda-morph", "sim")
