"""Activation in a run and in its children, and what happens when it fails."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

RUN = [sys.executable, "-m", "cuda_morph", "run"]


def run(tmp_path, source, *options, kind="script", env=None):
    (tmp_path / "prog.py").write_text(textwrap.dedent(source))
    program = ["prog.py"] if kind == "script" else ["-m", "prog"]
    done = subprocess.run(
        [*RUN, *options, *program],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        timeout=240,
    )
    return done.returncode, done.stdout, done.stderr


def test_cuda_view_report_and_table(tmp_path):
    source = """
        import importlib.util, sys
        assert importlib.util.find_spec("torch") is not None
        import torch, cuda_morph
        print(cuda_morph.is_active(), cuda_morph.info().view, torch.cuda.is_available())
        x = torch.ones(2, device="cuda")
        torch.cuda.synchronize()
        torch.cuda.synchronize()
        print(x.is_cuda, (x + x).sum().item(), cuda_morph.activate().view)
        print([getattr(finder, "_name", "") for finder in sys.meta_path].count("torch"), vars(torch.__loader__), "torch._native" in sys.modules)
        import atexit
        atexit.register(torch.cuda.synchronize)
        raise SystemExit(3)
    """
    code, out, err = run(tmp_path, source, "--backend", "cpu", "--report", "r.json")
    assert code == 3, err
    first, second, third = out.splitlines()
    assert first == "True cuda True"
    assert second == "True 4.0 cuda"
    assert third.startswith("0 {'name': 'torch', 'path': ")
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["activation"]["backend"] == "cpu"
    assert report["activation"]["view"] == "cuda"
    assert report["exit_code"] == 3
    assert report["simulated"] is False
    assert report["children_inherit"] is True
    assert report["torch"]
    calls = {entry["name"]: entry["calls"] for entry in report["usage"]}
    assert calls["torch.cuda.synchronize"] == 3  # the last one is an atexit function's
    lines = err.splitlines()
    assert lines[0].startswith("cuda-morph: cuda -> cpu (1 device), view cuda, tier T")
    assert lines[1] == "cuda-morph: run finished"
    assert any(line.split() == ["torch.cuda.synchronize", "redirect", "3"] for line in lines)


def test_native_view_and_quiet(tmp_path):
    source = """
        import torch, cuda_morph
        assert cuda_morph.info().view == "native"
        assert torch.ones(1).cuda().item() == 1
        import undefined_module
    """
    code, out, err = run(tmp_path, source, "--view", "native", "--quiet", "--backend", "cpu")
    plain = subprocess.run(
        [sys.executable, "-c", "import undefined_module"],
        check=False,
        capture_output=True,
        text=True,
    ).stderr
    assert (code, out) == (1, "")
    assert err.splitlines()[-1] == plain.splitlines()[-1]
    assert len(err.splitlines()) == 4  # nothing but the traceback


def test_view_variable(tmp_path):
    source = "import torch, cuda_morph; print(cuda_morph.info().view)"
    options = ["--backend", "cpu", "--quiet"]
    found = run(tmp_path, source, *options, env={"CUDA_MORPH_VIEW": "native"})
    assert found == (0, "native\n", "")
    found = run(tmp_path, source, *options, "--view=cuda", env={"CUDA_MORPH_VIEW": "native"})
    assert found == (0, "cuda\n", "")


def test_children_inherit(tmp_path):
    source = """
        import multiprocessing, os, subprocess, sys
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Data(Dataset):
            def __len__(self):
                return 2
            def __getitem__(self, index):
                import cuda_morph
                return torch.tensor([cuda_morph.is_active(), torch.cuda.is_available(), index])

        def work(name):
            import cuda_morph
            return name, cuda_morph.info().view, torch.zeros(1, device="cuda").is_cuda

        if __name__ == "__main__":
            for method in ("spawn", "fork"):
                loader = DataLoader(Data(), num_workers=1, multiprocessing_context=method)
                print(method, [batch.tolist() for batch in loader])
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(work, ["pool"]))
            child = "import torch, sys; print(sys.argv, torch.zeros(1).cuda().is_cuda)"
            sys.stdout.flush()
            subprocess.run([sys.executable, "-c", child, "x"], check=True)
    """
    code, out, err = run(tmp_path, source, "--backend", "cpu")
    assert code == 0, err
    assert out.splitlines() == [
        "spawn [[[1, 1, 0]], [[1, 1, 1]]]",
        "fork [[[1, 1, 0]], [[1, 1, 1]]]",
        "[('pool', 'cuda', True)]",
        "['-c', 'x'] True",
    ]
    assert err.count("cuda-morph:") == 1  # children say nothing


@pytest.mark.slow
def test_torchrun(tmp_path):
    source = """
        import os, torch, torch.distributed as dist
        torch.cuda.set_device(0)
        dist.init_process_group("gloo")
        x = torch.ones(1, device="cuda") * (dist.get_rank() + 1)
        dist.all_reduce(x)
        open(f"rank{dist.get_rank()}", "w").write(f"{x.item()} {x.is_cuda}")
        dist.destroy_process_group()
    """
    (tmp_path / "worker.py").write_text(textwrap.dedent(source))
    launch = ["--backend", "cpu", "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*RUN, *launch, "--nproc-per-node", "2", "worker.py"],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "rank0").read_text() == "3.0 True"
    assert (tmp_path / "rank1").read_text() == "3.0 True"


def test_without_the_entry_point(tmp_path):
    """torch's own call is switched off: the run activates all the same and says what is lost."""
    source = """
        import importlib.util, sys, threading
        for _ in range(3):
            importlib.util.find_spec("torch")
        try:
            importlib.util.find_spec("torch.nothing.there")
        except ModuleNotFoundError:
            pass
        thread = threading.Thread(target=lambda: __import__("torch"))
        thread.start()
        thread.join()
        import torch, cuda_morph
        print(cuda_morph.is_active(), torch.cuda.is_available(), vars(torch.__loader__).keys())
    """
    env = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    code, out, err = run(tmp_path, source, "--backend", "cpu", env=env)
    assert (code, out) == (0, "True True dict_keys(['name', 'path'])\n")
    assert "child processes are not redirected" in err


BROKEN = """
from cuda_morph.hookspecs import hookimpl
from cuda_morph.records import Backend, Detection, DeviceMapping

@hookimpl
def cuda_morph_backend():
    return Backend(name="brokenchip", display_name="Broken", vendor="Test", device_type="brokenchip",
                   adapter_module=None)

@hookimpl
def cuda_morph_detect():
    return Detection(available=True, device_count=1)

def load():
    raise OSError("the driver is too old")

@hookimpl
def cuda_morph_device_mapping():
    return DeviceMapping(target="brokenchip", init=load)
"""


@pytest.fixture
def broken(tmp_path):
    """Environment with an installed plugin whose adapter fails to load."""
    site = tmp_path / "site"
    info = site / "cuda_morph_brokenchip-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "brokenchip_plugin.py").write_text(BROKEN)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: cuda-morph-brokenchip\nVersion: 1.0\n"
    )
    (info / "entry_points.txt").write_text("[cuda_morph.plugins]\nbrokenchip = brokenchip_plugin\n")
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": path, "CUDA_MORPH_BACKEND": "brokenchip"}


@pytest.mark.parametrize(
    "importing",
    [
        "import torch",
        "try:\n    import torch\nexcept:\n    print('swallowed')",
        "import threading\nt = threading.Thread(target=__import__, args=('torch',))\nt.start()\nt.join()",
    ],
    ids=["plain", "swallowed", "thread"],
)
def test_failed_activation_stops_the_program(tmp_path, broken, importing):
    source = f"{importing}\nprint('went on')" if "try" not in importing else importing
    code, out, err = run(tmp_path, source, "--report", "r.json", env=broken)
    assert code == 2
    assert "went on" not in out
    assert "Traceback" not in err
    assert "the driver is too old" in err
    assert err.count("CM-E") == 1
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["exit_code"] == 2
    assert report["activation"] is None
    assert "the driver is too old" in report["error"]


def test_failed_activation_through_the_import_hook(tmp_path, broken):
    env = {**broken, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    code, out, err = run(tmp_path, "import torch\nprint('went on')", env=env)
    assert (code, out) == (2, "")
    assert "the driver is too old" in err
    assert "Traceback" not in err


def test_failure_in_a_child_is_one_line(tmp_path, broken):
    env = {**broken, "CUDA_MORPH_AUTO_ACTIVATE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", "import torch; print(torch.ones(1).item())"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "1.0\n")
    assert "the driver is too old" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_program_without_torch_does_not_import_it(tmp_path):
    source = "import sys; print('torch' in sys.modules, 'cuda_morph.activation' in sys.modules)"
    assert run(tmp_path, source, "--backend", "cpu") == (0, "False False\n", "")
