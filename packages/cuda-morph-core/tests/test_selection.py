import os
import subprocess
import sys
import textwrap

import pytest
from fake_distributions import FakeSite, source

from cuda_morph.builtin import REAL_CUDA
from cuda_morph.errors import (
    AmbiguousBackendError,
    BackendUnavailableError,
    PluginError,
    SettingError,
    UnknownBackendError,
)
from cuda_morph.selection import real_cuda_available, select_backend

ABSENT = "available=False, reason='no card answers'"


@pytest.fixture
def site(fake_site: FakeSite) -> FakeSite:
    """Only fakes are visible, so that what is installed here cannot be chosen."""
    fake_site.only_fakes()
    return fake_site


def add(site: FakeSite, name: str, **options: str) -> None:
    site.add(name, source(name, **options))


@pytest.fixture
def real_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch with CUDA and some devices: a compiled function of torch gives the number."""
    import torch

    monkeypatch.setattr(torch.version, "cuda", "12.4")
    monkeypatch.setattr(torch._C, "_cuda_getDeviceCount", torch._C.get_num_threads, raising=False)


def test_argument_wins(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    add(site, "one")
    add(site, "two")
    monkeypatch.setenv("CUDA_MORPH_BACKEND", "one")
    selection = select_backend("two")
    assert (selection.plugin, selection.backend.name) == ("two", "two")
    assert selection.reason == "it was asked for by name (2 device(s))"
    assert selection.detection.device_count == 2
    assert selection.warnings == ()


def test_environment_is_next(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    add(site, "one")
    add(site, "two")
    monkeypatch.setenv("CUDA_MORPH_BACKEND", " two ")
    selection = select_backend()
    assert selection.plugin == "two"
    assert "CUDA_MORPH_BACKEND" in selection.reason


def test_environment_with_an_unknown_name(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    add(site, "ascending")
    monkeypatch.setenv("CUDA_MORPH_BACKEND", "ascendng")
    with pytest.raises(UnknownBackendError, match=r"(?s)CUDA_MORPH_BACKEND.*mean 'ascending'"):
        select_backend()


def test_the_only_available_accelerator(site: FakeSite, real_cuda: None) -> None:
    add(site, "absent", detection=ABSENT)
    add(site, "present")
    add(site, "pretend", more="simulated=True")
    selection = select_backend()
    assert selection.plugin == "present"
    assert selection.warnings == ()
    assert not selection.passthrough


def test_two_available_accelerators_are_ambiguous(site: FakeSite) -> None:
    add(site, "one", detection="available=True, device_count=8, reason='driver 7'")
    add(site, "two")
    with pytest.raises(AmbiguousBackendError) as caught:
        select_backend()
    text = str(caught.value)
    assert "one (8 device(s), driver 7); two (2 device(s))" in text
    assert "activate('one')" in text


def test_real_cuda_is_left_alone(site: FakeSite, real_cuda: None) -> None:
    add(site, "absent", detection=ABSENT)
    add(site, "pretend", more="simulated=True")
    selection = select_backend()
    assert selection.backend is REAL_CUDA
    assert selection.passthrough
    assert selection.detection.device_count > 0


def test_real_cuda_by_name(site: FakeSite, real_cuda: None) -> None:
    add(site, "one")
    assert select_backend("cuda").passthrough


def test_real_cuda_that_is_not_there(site: FakeSite) -> None:
    assert not real_cuda_available()
    with pytest.raises(BackendUnavailableError, match="no usable device"):
        select_backend("cuda")


def test_an_active_backend_s_own_answer_is_no_real_cuda(
    site: FakeSite, real_cuda: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    assert real_cuda_available()
    monkeypatch.setattr(torch._C, "_cuda_getDeviceCount", lambda: 4)
    assert not real_cuda_available()


def test_cuda_build_without_a_card_is_no_real_cuda(
    site: FakeSite, real_cuda: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    for no_number in ("_get_deterministic_algorithms", "set_num_threads"):  # False; raises
        function = getattr(torch._C, no_number)
        monkeypatch.setattr(torch._C, "_cuda_getDeviceCount", function)
        assert not real_cuda_available()


def test_simulated_device_comes_before_the_cpu(site: FakeSite) -> None:
    add(site, "pretend", more="simulated=True")
    selection = select_backend()
    assert selection.plugin == "pretend"
    assert len(selection.warnings) == 1
    assert "simulated device 'pretend'" in selection.warnings[0]


def test_cpu_is_the_last_resort_and_says_so_once(site: FakeSite) -> None:
    add(site, "absent", detection=ABSENT)
    selection = select_backend()
    assert selection.plugin == "cpu"
    assert selection.warnings == (
        "No accelerator is available (absent: no card answers): CUDA calls run on the CPU.",
    )


def test_cpu_by_name_gives_no_warning(site: FakeSite) -> None:
    assert select_backend("cpu").warnings == ()


def test_refused_fallback_lists_each_plugin_with_its_reason(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(site, "absent", detection=ABSENT)
    add(site, "future", more="spec='2.0'")
    site.add("faulty", "raise OSError('libchip')")
    add(site, "stopped")
    monkeypatch.setenv("CUDA_MORPH_BLOCK", "stopped")
    with pytest.raises(BackendUnavailableError) as caught:
        select_backend(fallback="error")
    for part in (
        "absent: no card answers",
        "faulty: cannot be imported: OSError: libchip",
        "future: written for specification 2.0",
        "stopped: blocked by CUDA_MORPH_BLOCK",
    ):
        assert part in str(caught.value)


def test_broken_plugin_is_ignored_with_a_warning(site: FakeSite) -> None:
    site.add("faulty", "raise OSError('libchip')")
    add(site, "good")
    selection = select_backend()
    assert selection.plugin == "good"
    assert len(selection.warnings) == 1
    assert "'faulty' (cuda-morph-faulty) is broken" in selection.warnings[0]


def test_plugin_whose_detection_raises_is_ignored_with_a_warning(site: FakeSite) -> None:
    add(site, "liar", detection="available=1/0")
    selection = select_backend()
    assert selection.plugin == "cpu"
    assert "'liar'" in selection.warnings[0]
    with pytest.raises(PluginError) as caught:
        select_backend("liar")
    assert caught.value.message.endswith("division by zero.")
    assert not caught.value.message.endswith("..")


def test_list_that_names_nothing_gives_a_warning(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(site, "good")
    monkeypatch.setenv("CUDA_MORPH_PLUGINS", "good,godo")
    assert select_backend("good").warnings == (
        "CUDA_MORPH_PLUGINS names 'godo', which is not installed.",
    )


def test_unavailable_backend_by_name_never_becomes_the_cpu(site: FakeSite) -> None:
    more = "runtime_requires=('torch-chip>=1',), smi='chip-smi'"
    add(site, "absent", detection=ABSENT, more=more)
    with pytest.raises(BackendUnavailableError) as caught:
        select_backend("absent", fallback="cpu")
    assert "cannot be used: no card answers." in caught.value.message
    assert "torch-chip>=1" in caught.value.hint
    assert "chip-smi" in caught.value.hint


def test_broken_backend_by_name(site: FakeSite) -> None:
    site.add("faulty", "raise OSError('libchip')")
    with pytest.raises(PluginError, match=r"'faulty'.*is broken.*libchip") as caught:
        select_backend("faulty")
    assert isinstance(caught.value.__cause__, OSError)


def test_blocked_backend_by_name(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    add(site, "good")
    monkeypatch.setenv("CUDA_MORPH_BLOCK", "good")
    with pytest.raises(BackendUnavailableError, match="'good' is blocked by CUDA_MORPH_BLOCK"):
        select_backend("good")


def test_blocked_cpu_cannot_stand_in(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_MORPH_BLOCK", "cpu")
    with pytest.raises(BackendUnavailableError, match="CPU cannot stand in: blocked"):
        select_backend()


def test_unknown_name_is_guessed(site: FakeSite) -> None:
    add(site, "mychip")
    with pytest.raises(UnknownBackendError) as caught:
        select_backend("MyChop")
    assert caught.value.hint == "Did you mean 'mychip'? Installed: cpu, cuda, mychip."


@pytest.mark.parametrize("name", ["", "  ", 3, True])
def test_what_is_no_name(site: FakeSite, name: object) -> None:
    with pytest.raises(SettingError):
        select_backend(name)


@pytest.mark.parametrize("fallback", ["gpu", "", None])
def test_fallback_must_be_known(site: FakeSite, fallback: object) -> None:
    with pytest.raises(SettingError, match="fallback="):
        select_backend("cpu", fallback=fallback)


def test_strict_mode_refuses_to_choose_beside_a_broken_plugin(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("faulty", "raise OSError('libchip')")
    add(site, "good")
    monkeypatch.setenv("CUDA_MORPH_STRICT", "1")
    with pytest.raises(PluginError, match="faulty"):
        select_backend()


def test_without_pytorch_there_is_nothing_to_fall_back_to() -> None:
    code = """
        import sys
        sys.modules["torch"] = None
        from cuda_morph.errors import TorchMissingError
        from cuda_morph.selection import select_backend
        try:
            select_backend()
        except TorchMissingError as error:
            print("PyTorch is not installed" in str(error))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "CUDA_MORPH_PLUGINS": "none-of-them"},
    )
    assert done.stdout.strip() == "True"


def test_choosing_by_name_imports_no_torch(site: FakeSite) -> None:
    code = """
        import sys
        from cuda_morph.selection import select_backend
        select_backend("cpu")
        print("torch" in sys.modules)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_a_card_that_pytorch_calls_cuda_is_left_alone(site: FakeSite) -> None:
    text = source("native").replace('device_type="fake"', 'device_type="cuda"')
    site.add("native", text)
    selection = select_backend()
    assert (selection.plugin, selection.passthrough) == ("native", True)
    import torch

    import cuda_morph

    before = dict(vars(torch.cuda))
    with cuda_morph.activate("native") as activation:
        assert (activation.tier, activation.backend.name) == ("passthrough", "native")
        assert activation.device_count == 2
        assert not cuda_morph.is_active()
        assert vars(torch.cuda) == before


def test_a_plugins_own_advice_is_given(site: FakeSite) -> None:
    add(site, "one", detection="available=False, reason='no', details={'advice': 'Turn the key.'}")
    with pytest.raises(BackendUnavailableError, match=r"Turn the key\. cuda-morph doctor"):
        select_backend("one")


def test_vendors_of_which_nothing_is_here_are_named_together(site: FakeSite) -> None:
    for name in ("one", "two"):
        details = "details={'problem': 'adapter_missing'}"
        add(site, name, detection=f"available=False, reason='{name} is missing.', {details}")
    add(site, "three", detection="available=False, reason='No card answers.'")
    [warning] = select_backend().warnings
    assert "(three: No card answers; nothing is installed for one, two)" in warning
