"""The device under CUDA's name: nothing in the native half may depend on its own name."""

import pytest

pytest.importorskip("cuda_morph.activation")


def test_messages_and_devices_say_cuda(python):
    python(
        "import cuda_morph\n"
        "cuda_morph.activate('sim', view='cuda')\n"
        "import torch\n"
        "x = torch.ones(3, device='cuda')\n"
        "assert str(x.device) == 'cuda:0' and x.is_cuda\n"
        "for bad, text in (\n"
        "    (lambda: x + torch.ones(3), 'two devices, cuda:0 and cpu!'),\n"
        "    (lambda: x + torch.ones(3, device='cuda:1'), 'two devices, cuda:0 and cuda:1!'),\n"
        "    (lambda: torch.empty(1 << 44, device='cuda'), 'CUDA out of memory. Tried to'),\n"
        "    (lambda: torch.empty(1, device='cuda:9'), 'CUDA error: invalid device ordinal'),\n"
        "    (lambda: torch.rand(2, device='cuda', generator=torch.Generator()), \"'cuda' dev\"),\n"
        "):\n"
        "    try:\n"
        "        bad()\n"
        "    except RuntimeError as error:\n"
        "        assert text in str(error), error\n"
        "    else:\n"
        "        raise SystemExit(text)\n"
        "with torch.autocast('cuda', dtype=torch.bfloat16):\n"
        "    assert (torch.ones(2, 2, device='cuda') @ torch.ones(2, 2, device='cuda'))"
        ".dtype == torch.bfloat16\n"
    )


def test_the_native_half_names_no_device():
    from cuda_morph_sim import build

    for path in build.SOURCES.glob("*.*"):
        text = path.read_text()
        for quoted in ('"sim"', '"sim:', '"cuda"', '"cuda:', '"privateuse'):
            assert quoted not in text, f"{path.name} spells {quoted}"
