def test_loading_twice_gives_the_same_module(sim):
    from cuda_morph_sim.loader import load, loaded_module

    assert load() is sim
    assert loaded_module() is sim


def test_another_name_in_the_same_process_is_refused(sim):
    import pytest

    from cuda_morph.errors import AlreadyActiveError
    from cuda_morph_sim.loader import load

    with pytest.raises(AlreadyActiveError, match="loaded as 'sim'") as error:
        load("other")
    assert "new process" in error.value.hint


def test_the_name_is_a_parameter(python):
    python(
        "import torch\n"
        "from cuda_morph_sim.loader import load\n"
        "module = load('npu')\n"
        "assert module is torch.npu and module.__name__ == 'torch.npu'\n"
        "x = torch.ones(3, device='npu:1') + 1\n"
        "assert str(x.device) == 'npu:1' and x.is_npu\n"
        "assert torch.npu.memory_allocated('npu:1') > 0\n"
        "import pytest\n"
        "with pytest.raises(RuntimeError, match='npu:1 and cpu'):\n"
        "    x + torch.ones(3)\n"
    )


def test_a_slot_that_is_taken_is_explained(python):
    python(
        "import torch\n"
        "torch.utils.rename_privateuse1_backend('mychip')\n"
        "from cuda_morph.errors import AlreadyActiveError\n"
        "from cuda_morph_sim.loader import load\n"
        "try:\n"
        "    load()\n"
        "except AlreadyActiveError as error:\n"
        "    assert \"'mychip' holds it\" in str(error)\n"
        "else:\n"
        "    raise SystemExit('loaded')\n"
    )


def test_devices_and_memory_follow_the_environment(python):
    python(
        "import torch, cuda_morph_sim.device\n"
        "assert torch.sim.device_count() == 3 == torch.accelerator.device_count()\n"
        "assert torch.sim.mem_get_info(2)[1] == 64 << 20\n",
        CUDA_MORPH_SIM_DEVICES="3",
        CUDA_MORPH_SIM_MEMORY="64MiB",
    )


def test_bad_settings_stop_loading_before_anything_is_registered(python):
    python(
        "import torch\n"
        "from cuda_morph.errors import SettingError\n"
        "from cuda_morph_sim.loader import load\n"
        "try:\n    load()\n"
        "except SettingError: pass\n"
        "assert torch._C._get_privateuse1_backend_name() == 'privateuseone'\n",
        CUDA_MORPH_SIM_DEVICES="many",
    )


def test_a_device_loaded_after_a_backward_pass_on_the_cpu_can_do_one(python):
    # The autograd engine starts its threads once; the loader has to give it those of the device.
    python(
        "import torch\n"
        "torch.ones(3, requires_grad=True).sum().backward()\n"
        "import cuda_morph_sim.device\n"
        "x = torch.ones(3, requires_grad=True, device='sim:1')\n"
        "x.sum().backward()\n"
        "assert x.grad.tolist() == [1, 1, 1]\n"
    )


def test_only_torch_is_named_after_the_device(sim):
    import sys

    import torch

    assert sys.modules["torch.sim"] is sim is torch.sim
    assert torch.ones(1).sim().is_sim


def test_a_process_may_end_right_after_a_backward_pass(python):
    # The engine's thread still holds the pass then; it must not meet a dying interpreter.
    for _ in range(4):
        python(
            "import torch, cuda_morph_sim.device\n"
            "x = torch.ones(3, requires_grad=True, device='sim')\n"
            "(x * 2).sum().backward()\n"
        )
