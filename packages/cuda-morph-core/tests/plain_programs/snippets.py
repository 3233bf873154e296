"""Plain PyTorch on the CPU, one concept per function; each returns something comparable.

None of them mentions CUDA: with or without an active shim the result must be the same.
"""

import copy
import io
import pickle
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def factories():
    return [torch.empty(2).shape, torch.zeros(2, device="cpu").tolist(), torch.arange(3).dtype]


def device_objects():
    cpu, meta = torch.device("cpu"), torch.device("meta")
    return [repr(cpu), cpu.type, cpu.index, repr(meta), torch.device("cpu", 0).index, cpu == meta]


def device_class():
    device = torch.device("cpu")
    return [
        type(device) is torch.device,
        isinstance(device, torch.device),
        hash(device) is not None,
    ]


def unknown_device_string():
    try:
        torch.device("nonsense")
    except RuntimeError as error:
        return str(error).splitlines()[0][:40]


def conversions():
    x = torch.ones(2)
    return [x.to(torch.float64).dtype, x.to("cpu").device.type, x.double().half().dtype]


def type_names():
    x = torch.ones(2)
    return [x.type(), x.type("torch.DoubleTensor").dtype, x.type(torch.int32).dtype]


def typed_classes():
    return [isinstance(torch.ones(1), torch.FloatTensor), torch.LongTensor([1]).dtype]


def is_cuda_of_meta():
    return torch.empty(1, device="meta").is_cuda


def module_training():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(3):
        loss = model(torch.randn(8, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return round(loss.item(), 6)


def recurrent():
    torch.manual_seed(0)
    out, _ = nn.LSTM(3, 5)(torch.randn(4, 2, 3))
    return [round(v, 6) for v in out.flatten()[:4].tolist()]


def random_state():
    torch.manual_seed(3)
    state = torch.get_rng_state()
    first = torch.randn(2)
    torch.set_rng_state(state)
    return torch.equal(first, torch.randn(2))


def fork_rng():
    torch.manual_seed(1)
    with torch.random.fork_rng():
        torch.randn(3)
    return torch.randn(1).item()


def own_generator():
    return torch.randn(2, generator=torch.Generator().manual_seed(5)).tolist()


def cpu_autocast():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return (torch.ones(2, 2) @ torch.ones(2, 2)).dtype


def checkpoints():
    buffer = io.BytesIO()
    torch.save({"a": torch.arange(3), "d": torch.device("cpu")}, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer)
    buffer.seek(0)
    mapped = torch.load(buffer, map_location="cpu")
    return [loaded["a"].tolist(), repr(loaded["d"]), mapped["a"].device.type]


def file_whose_name_says_cuda():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "my_cuda_model.pt"
        torch.save(torch.ones(2), path)
        return [torch.load(str(path)).tolist(), path.name]


def pickles():
    x = torch.ones(2, requires_grad=True)
    return [pickle.loads(pickle.dumps(x)).tolist(), copy.deepcopy(nn.Linear(2, 2)).weight.shape]


def data_loader():
    data = TensorDataset(torch.arange(8.0))
    return [
        sum(batch[0].sum().item() for batch in DataLoader(data, 2, num_workers=n)) for n in (0, 2)
    ]


def default_device():
    torch.set_default_device("meta")
    inside = torch.empty(1).device.type
    torch.set_default_device(None)
    with torch.device("meta"):
        scoped = torch.empty(1).device.type
    return [inside, scoped, torch.empty(1).device.type]


def default_tensor_type():
    torch.set_default_tensor_type(torch.DoubleTensor)
    dtype = torch.ones(1).dtype
    torch.set_default_tensor_type("torch.FloatTensor")
    return [dtype, torch.ones(1).dtype]


def scripting():
    @torch.jit.script
    def double(x):
        return x * 2 + torch.zeros(1, device="cpu")

    return [double(torch.ones(2)).tolist(), torch.jit.trace(nn.Linear(2, 1), torch.ones(1, 2)).code]


def compiling():
    torch.manual_seed(0)

    @torch.compile(backend="eager", fullgraph=True)
    def f(x):
        return (x + torch.zeros(2, device="cpu")).to("cpu") * x.is_floating_point()

    return f(torch.ones(2)).tolist()


def tracing():
    return str(torch.fx.symbolic_trace(nn.Linear(2, 2)).code)


def fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return repr(torch.empty(2, device="cpu").device)


def function_modes():
    from torch.overrides import TorchFunctionMode

    class Names(TorchFunctionMode):
        seen = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen.append(getattr(func, "__name__", "?"))
            return func(*args, **(kwargs or {}))

    with Names() as mode:
        torch.device("cpu")
        torch.ones(1).to("cpu")
    return mode.seen


def profiling():
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as run:
        torch.ones(2) + 1
    return "aten::add" in {event.key for event in run.key_averages()}


def vmap_and_grad():
    from torch.func import grad, vmap

    return vmap(grad(lambda x: x**2))(torch.arange(3.0)).tolist()


def storages():
    return [torch.UntypedStorage(4).device.type, torch.FloatStorage(2).dtype]


def process_group():
    import torch.distributed as dist

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rendezvous_cuda_1"
        dist.init_process_group("gloo", init_method=f"file://{path}", rank=0, world_size=1)
        x = torch.ones(2)
        dist.all_reduce(x)
        backend = dist.get_backend()
        dist.destroy_process_group()
        return [x.tolist(), backend, path.name]


def custom_operator():
    @torch.library.custom_op("plain_programs::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    return twice(torch.ones(2)).tolist()


def numpy_exchange():
    return torch.from_numpy(torch.arange(3).numpy()).tolist()


def dlpack():
    return torch.from_dlpack(torch.arange(3)).tolist()


def shared_memory():
    return torch.ones(2).share_memory_().is_shared()


def threads():
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        return sum(
            pool.map(lambda i: torch.full((2,), float(i), device="cpu").sum().item(), range(20))
        )


SNIPPETS = [
    value
    for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", "") == __name__ and not name.startswith("_")
]
