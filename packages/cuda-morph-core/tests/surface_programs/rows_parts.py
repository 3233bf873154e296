"""Calls for the rows of submodules: random numbers, amp, comm, nvtx, nccl, tunable, types."""

from __future__ import annotations

import warnings

import torch
from world import raises

cuda = torch.cuda
DTYPES = {
    "BFloat16": torch.bfloat16,
    "Bool": torch.bool,
    "Byte": torch.uint8,
    "Char": torch.int8,
    "ComplexDouble": torch.complex128,
    "ComplexFloat": torch.complex64,
    "Double": torch.float64,
    "Float": torch.float32,
    "Half": torch.float16,
    "Int": torch.int32,
    "Long": torch.int64,
    "Short": torch.int16,
}


def draw(device="cuda"):
    return torch.rand(4, device=device).tolist()


def manual_seed(world):
    cuda.manual_seed(3)
    first = draw()
    assert first != draw()
    cuda.manual_seed(3)
    assert draw() == first


def manual_seed_all(world):
    last = world.devices - 1
    cuda.manual_seed_all(3)
    first = draw(f"cuda:{last}")
    cuda.manual_seed_all(3)
    assert draw(f"cuda:{last}") == first


def seed(world):
    for reseed in (cuda.seed, cuda.seed_all):
        cuda.manual_seed(3)
        first = draw()
        cuda.manual_seed(3)
        reseed()
        assert draw() != first


def initial_seed(world):
    cuda.manual_seed(17)
    assert cuda.initial_seed() == 17


def rng_state(world):
    for device in ("cuda", 0, torch.device("cuda", 0)):
        state = cuda.get_rng_state(device)
        assert (state.dtype, state.device.type) == (torch.uint8, "cpu")
        first = draw()
        cuda.set_rng_state(state, device)
        assert draw() == first


def rng_state_all(world):
    states = cuda.get_rng_state_all()
    assert len(states) == world.devices
    first = draw()
    cuda.set_rng_state_all(states)
    assert draw() == first


def default_generators(world):
    assert len(cuda.default_generators) == world.devices
    generator = cuda.default_generators[0]
    cuda.manual_seed(5)
    assert generator.initial_seed() == 5
    assert generator.device.type == world.shown


def product():
    value = torch.ones(4, 4, device="cuda")
    return (value @ value).dtype


def autocast(world):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        with cuda.amp.autocast(dtype=torch.bfloat16):
            assert product() is torch.bfloat16
        with cuda.amp.autocast():
            assert product() in (torch.float16, torch.bfloat16)
        with cuda.amp.autocast(enabled=False):
            assert product() is torch.float32


def custom_decorators(world):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        cast_forward = cuda.amp.custom_fwd(cast_inputs=torch.float16)
        same_backward = cuda.amp.custom_bwd

        class Twice(torch.autograd.Function):
            @staticmethod
            @cast_forward
            def forward(ctx, x):
                seen.append(x.dtype)
                return x * 2

            @staticmethod
            @same_backward
            def backward(ctx, grad):
                seen.append(torch.is_autocast_enabled("cuda"))
                return grad * 2

        seen = []
        x = torch.ones(3, device="cuda", requires_grad=True)
        with cuda.amp.autocast(dtype=torch.float16):
            y = Twice.apply(x)
        y.sum().backward()
    # Inside, autocast is off and arguments were cast; backward repeats the forward's state.
    assert seen == [torch.float16, False]
    assert x.grad.tolist() == [2, 2, 2]


def grad_scaler(world):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        scaler = cuda.amp.GradScaler(init_scale=8.0)
    assert scaler.is_enabled()
    w = torch.ones(2, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1.0)
    scaled = scaler.scale(w.sum())
    assert scaled.item() == 16.0
    scaled.backward()
    assert w.grad.tolist() == [8, 8]
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [0, 0]
    w.grad = torch.tensor([float("inf"), 0], device="cuda")
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [0, 0]
    assert scaler.get_scale() == 4.0


def amp_not_available(world):
    assert cuda.amp.common.amp_definitely_not_available() is False


def broadcast(world):
    places = list(range(world.devices))
    copies = cuda.comm.broadcast(torch.arange(3), places)
    assert [copy.device for copy in copies] == [world.device(i) for i in places]
    assert all(copy.tolist() == [0, 1, 2] for copy in copies)


def broadcast_coalesced(world):
    parts = [torch.ones(2, device="cuda"), torch.zeros(3, device="cuda")]
    copies = cuda.comm.broadcast_coalesced(parts, list(range(world.devices)))
    assert [[len(part) for part in copy] for copy in copies] == [[2, 3]] * world.devices


def scatter_gather(world):
    places = list(range(world.devices))
    parts = cuda.comm.scatter(torch.arange(4), places)
    assert sum(len(part) for part in parts) == 4
    assert cuda.comm.gather(parts, destination=0).tolist() == [0, 1, 2, 3]
    assert cuda.comm.gather(parts, destination=-1).device.type == "cpu"


def reduce_add(world):
    places = [f"cuda:{index}" for index in range(world.devices)]
    total = cuda.comm.reduce_add([torch.ones(2, device=place) for place in places])
    assert total.tolist() == [world.devices] * 2


def reduce_add_coalesced(world):
    inputs = [[torch.ones(2, device=f"cuda:{index}")] for index in range(world.devices)]
    assert cuda.comm.reduce_add_coalesced(inputs)[0].tolist() == [world.devices] * 2


def nvtx(world):
    assert cuda.nvtx.range_push("outer") == 0
    assert cuda.nvtx.range_push("inner") == 1
    assert cuda.nvtx.range_pop() == 1
    assert cuda.nvtx.range_pop() == 0
    first, second = cuda.nvtx.range_start("a"), cuda.nvtx.range_start("b")
    assert first != second
    cuda.nvtx.range_end(first)
    cuda.nvtx.range_end(second)
    assert cuda.nvtx.mark("here") is None
    with torch.profiler.profile() as profile, cuda.nvtx.range("step {}", 7):
        torch.ones(1, device="cuda")
    assert "step 7" in {event.key for event in profile.key_averages()}


def nccl(world):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert cuda.nccl.is_available([torch.ones(1, device="cuda")]) is False
    assert cuda.nccl.version() == (0, 0, 0)
    assert cuda.nccl.SUM == 0


def tunable(world):
    tuning = cuda.tunable
    assert tuning.is_enabled() is False
    assert tuning.tuning_is_enabled() is False
    assert tuning.record_untuned_is_enabled() is False
    assert tuning.get_filename() == ""
    assert tuning.get_max_tuning_duration() == 30
    assert tuning.get_max_tuning_iterations() == 100
    assert tuning.get_rotating_buffer_size() == 0
    assert len(tuning.get_results()) == len(tuning.get_validators()) == 0


def typed_tensor(name):
    def check(world):
        kind = getattr(cuda, f"{name}Tensor")
        made = kind([1, 0, 1])
        assert (made.dtype, made.device) == (DTYPES[name], world.device())
        assert isinstance(made, kind)
        assert not isinstance(made.cpu(), kind) or world.backend == "cpu"
        assert kind(2, 3).shape == (2, 3)
        assert torch.ones(2).type(kind).dtype is DTYPES[name]
        assert torch.ones(2).type(f"torch.cuda.{name}Tensor").device == world.device()

    return check


def sparse_tensor(name):
    def check(world):
        kind = getattr(cuda.sparse, f"{name}Tensor")
        made = kind(torch.tensor([[0, 1]]), torch.tensor([2, 3]), (3,))
        assert isinstance(made, kind)
        assert (made.dtype, made.is_sparse) == (DTYPES[name], True)
        assert made.device.type == world.shown
        assert made.to_dense().tolist() == [2, 3, 0]

    return check


def typed_storage(name):
    def check(world):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            kind = getattr(cuda, f"{name}Storage")
            made = kind(4)
            assert (len(made), made.dtype) == (4, DTYPES[name])
            assert made.device.type == world.shown
            assert isinstance(made, kind)
            assert not isinstance(torch.FloatStorage(4), cuda.HalfStorage)
            assert len(kind([1, 0])) == 2

    return check


def aliases(world):
    assert cuda.AcceleratorError is torch._C.AcceleratorError
    assert issubclass(cuda.DeferredCudaCallError, Exception)
    assert cuda.amp.grad_scaler.OptState is torch.amp.grad_scaler.OptState
    assert cuda.random.Tensor is cuda.graphs.Tensor is cuda.jiterator.Tensor is torch.Tensor
    assert cuda.green_contexts.SUPPORTED is False
    assert isinstance(cuda.has_half, bool)
    assert isinstance(cuda.has_magma, bool)
    assert cuda.profiler.DEFAULT_FLAGS
    assert cuda.gds.Storage is not None
    assert cuda.Device is not None
    assert cuda.DEVICE_REQUIREMENT is not None
    assert cuda.PYTORCH_RELEASES_CODE_CC is not None


def jiterator(world):
    kernel = cuda.jiterator._create_jit_fn("template <typename T> T f(T x) { return x; }")
    assert "CM-E07" in raises(NotImplementedError, kernel, torch.ones(1, device="cuda"))


TUNABLE = [
    "is_enabled",
    "tuning_is_enabled",
    "record_untuned_is_enabled",
    "get_filename",
    "get_max_tuning_duration",
    "get_max_tuning_iterations",
    "get_rotating_buffer_size",
    "get_results",
    "get_validators",
]
NVTX = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]
ALIASES = [
    "AcceleratorError",
    "DeferredCudaCallError",
    "amp.grad_scaler.OptState",
    "random.Tensor",
    "graphs.Tensor",
    "jiterator.Tensor",
    "green_contexts.SUPPORTED",
    "has_half",
    "has_magma",
    "profiler.DEFAULT_FLAGS",
    "gds.Storage",
    "Device",
    "DEVICE_REQUIREMENT",
    "PYTORCH_RELEASES_CODE_CC",
]
CALLS = {
    "torch.cuda.manual_seed": manual_seed,
    "torch.cuda.manual_seed_all": manual_seed_all,
    "torch.cuda.seed": seed,
    "torch.cuda.seed_all": seed,
    "torch.cuda.initial_seed": initial_seed,
    "torch.cuda.get_rng_state": rng_state,
    "torch.cuda.set_rng_state": rng_state,
    "torch.cuda.get_rng_state_all": rng_state_all,
    "torch.cuda.set_rng_state_all": rng_state_all,
    "torch.cuda.default_generators": default_generators,
    "torch.cuda.amp.autocast": autocast,
    "torch.cuda.amp.custom_fwd": custom_decorators,
    "torch.cuda.amp.custom_bwd": custom_decorators,
    "torch.cuda.amp.GradScaler": grad_scaler,
    "torch.cuda.amp.amp_definitely_not_available": amp_not_available,
    "torch.cuda.comm.broadcast": broadcast,
    "torch.cuda.comm.broadcast_coalesced": broadcast_coalesced,
    "torch.cuda.comm.scatter": scatter_gather,
    "torch.cuda.comm.gather": scatter_gather,
    "torch.cuda.comm.reduce_add": reduce_add,
    "torch.cuda.comm.reduce_add_coalesced": reduce_add_coalesced,
    "torch.cuda.jiterator": jiterator,
    **{f"torch.cuda.nvtx.{name}": nvtx for name in NVTX},
    **{f"torch.cuda.nccl.{name}": nccl for name in ("is_available", "version", "SUM")},
    **{f"torch.cuda.tunable.{name}": tunable for name in TUNABLE},
    **{f"torch.cuda.{name}": aliases for name in ALIASES},
    **{f"torch.cuda.{name}Tensor": typed_tensor(name) for name in DTYPES if "Complex" not in name},
    **{
        f"torch.cuda.sparse.{name}Tensor": sparse_tensor(name)
        for name in DTYPES
        if "Complex" not in name and name != "Bool"
    },
    **{f"torch.cuda.{name}Storage": typed_storage(name) for name in DTYPES},
}
