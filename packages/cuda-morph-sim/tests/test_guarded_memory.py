import signal

USE = """
import ctypes, io, pickle
import torch, cuda_morph_sim.device
x = torch.arange(4.0, device="sim")
y = (x.view(2, 2) @ x.view(2, 2)).relu()
z = torch.empty(0, device="sim")
torch.add(x, 1, out=z)
assert z.tolist() == [1, 2, 3, 4]
assert pickle.loads(pickle.dumps(x)).tolist() == [0, 1, 2, 3]
assert x[2:].data_ptr() == x.data_ptr() + 8
layer = torch.nn.Linear(4, 2).to("sim")
layer(x).sum().backward()
assert layer.weight.grad.cpu()[0].tolist() == [0, 1, 2, 3]
print(flush=True)
"""


def test_debug_mode_computes_the_same(python):
    python(USE, CUDA_MORPH_SIM_DEBUG="1")


def test_reading_device_memory_from_the_host_stops_the_process(python):
    read = USE + "print(ctypes.c_float.from_address(x.data_ptr()).value)\n"
    assert python(read, CUDA_MORPH_SIM_DEBUG="0").returncode == 0
    done = python(read, CUDA_MORPH_SIM_DEBUG="1", expect=None)
    assert done.returncode == -signal.SIGSEGV
