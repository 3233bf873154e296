"""PyTorch's default compiler for the simulated device: the CPU's code on the device's bytes.

The whole path of ``torch.compile`` stays PyTorch's own - Dynamo, AOTAutograd, the passes on the
joint graph - up to the point where one graph becomes code. There a graph on the simulated device
is rewritten for the CPU, compiled by inductor's C++ back end, and called on host aliases of the
device's tensors. Nothing is copied.

Upstream: ``torch/_inductor/compile_fx.py`` has no way to register the step from a graph to code
for one device type, so `compile_fx_inner` itself is redirected; other graphs pass through.
"""

# ruff: noqa: TID253 - loaded when a program compiles, when torch already is

from __future__ import annotations

import copy
import logging
from typing import TYPE_CHECKING, Any

import torch
import torch.utils._pytree as pytree
from torch._inductor import compile_fx
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.passes.fake_tensor_prop import FakeTensorProp
from torch.utils._python_dispatch import _disable_current_modes

from cuda_morph.errors import RefusedError
from cuda_morph.patching import Journal
from cuda_morph_sim import toolchain
from cuda_morph_sim.inductor_operators import for_host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_log = logging.getLogger("cuda_morph")
_HOST = torch.device("cpu")
_journal = Journal()
_noticed_missing_compiler = False


def connect() -> None:
    """Take over graphs on the simulated device; PyTorch's compiler is loaded by now."""
    if len(_journal):
        return
    compiler = _Compiler()
    compiler.original = _journal.redirect_function(compile_fx.compile_fx_inner, compiler)


class _Compiler:
    """Stands for ``compile_fx_inner``, which turns one graph into code."""

    original: Callable[..., Any]

    def __call__(self, module: Any, inputs: Sequence[Any], *names: Any, **options: Any) -> Any:
        if not _is_on_device(module, inputs):
            return self.original(module, inputs, *names, **options)
        if V.aot_compilation:
            raise RefusedError(
                "A program on the simulated device cannot be compiled ahead of time.",
                hint="Use torch.compile, or torch.export.save and run the exported program.",
            )
        if not _has_compiler():
            return _boxed(module.forward)
        outputs = _Outputs(module)
        draws = _draws(module)
        host_module, host_inputs = _moved_to_host(module, inputs)
        compiled = self.original(host_module, host_inputs, *names, **options)
        return _on_aliases(compiled, outputs, draws)


def _device_type() -> str:
    from cuda_morph_sim.loader import loaded_module

    module = loaded_module()
    assert module is not None, "the compiler is connected when the device is loaded"  # noqa: S101
    return str(torch.device(module.__name__.rpartition(".")[2]).type)


def _is_on_device(module: Any, inputs: Iterable[Any]) -> bool:
    mine = _device_type()
    values = [*inputs, *(node.meta.get("val") for node in module.graph.nodes)]
    return any(
        isinstance(leaf, torch.Tensor) and leaf.device.type == mine
        for leaf in pytree.tree_leaves(values)
    )


def _has_compiler() -> bool:
    """Tell whether code can be compiled; without, graphs run operator by operator."""
    global _noticed_missing_compiler
    if toolchain.find_compiler() is not None:
        return True
    if not _noticed_missing_compiler:
        _noticed_missing_compiler = True
        _log.warning(
            "No C++ compiler was found (%s): torch.compile runs its graphs on the simulated device "
            "operator by operator, as backend='aot_eager' does.",
            " or ".join(toolchain.COMPILERS),
        )
    return False


def _boxed(forward: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    def run(arguments: list[Any]) -> Any:
        given = list(arguments)
        arguments.clear()
        return forward(*given)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


class _Outputs:
    """Which of a graph's outputs belong on which device."""

    def __init__(self, module: Any) -> None:
        (values,) = module.graph.output_node().args
        self.indices = [self._index(value) for value in pytree.tree_leaves(values)]

    @staticmethod
    def _index(value: Any) -> int | None:
        example = value.meta.get("val") if isinstance(value, torch.fx.Node) else None
        if not isinstance(example, torch.Tensor) or example.device.type != _device_type():
            return None
        return example.device.index or 0


def _draws(module: Any) -> int | None:
    """Return the index of the device whose generator a graph draws from, if it draws."""
    for node in module.graph.nodes:
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) or "seed" in str(
            node.target
        ):
            for value in pytree.tree_leaves(node.meta.get("val")):
                if isinstance(value, torch.Tensor) and value.device.type == _device_type():
                    return value.device.index or 0
    return None


def _moved_to_host(module: Any, inputs: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return a copy of a graph, and its example inputs, with the CPU as the only device."""
    mine = _device_type()
    host_module = _host_copy(module, mine)
    host_inputs = [_host_example(value, mine) for value in inputs]
    fake_mode = torch._guards.detect_fake_mode(list(inputs))
    if fake_mode is not None:
        _propagate(host_module, host_inputs, fake_mode, mine)
    return host_module, host_inputs


def _propagate(module: Any, inputs: list[Any], fake_mode: Any, mine: str) -> None:
    for part in _parts(module):
        examples = [node.meta.get("val") for node in part.graph.find_nodes(op="placeholder")]
        if all(example is not None for example in examples):
            _propagate(part, [_host_example(value, mine) for value in examples], fake_mode, mine)
    _Propagation(module, fake_mode).propagate_dont_convert_inputs(*inputs)


def _parts(module: Any) -> list[Any]:
    """Return the graphs inside a graph: branches and bodies of loops."""
    return [part for part in module.children() if isinstance(part, torch.fx.GraphModule)]


class _Propagation(FakeTensorProp):  # type: ignore[misc, unused-ignore]
    """Runs the rewritten graph on fake tensors, so that every node knows its result anew."""

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Takes a constant of the graph as a fake tensor too."""
        value = super().get_attr(target, args, kwargs)
        if isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor):
            return self._mode.from_tensor(value, static_shapes=True)
        return value


def _host_copy(module: Any, mine: str) -> Any:
    index = _index_of(module, mine)

    def host_device(value: Any) -> Any:
        if isinstance(value, torch.device) and value.type == mine:
            return _HOST
        return for_host(value, index)

    host = torch.fx.GraphModule(module, copy.deepcopy(module.graph))
    host.meta = dict(module.meta)
    for node in host.graph.nodes:
        node.target = for_host(node.target, index)
        node.args = pytree.tree_map(host_device, node.args)
        node.kwargs = pytree.tree_map(host_device, node.kwargs)
    _keep_copies(host, mine)
    _move_constants(host, mine)
    for name, part in host.named_children():
        if isinstance(part, torch.fx.GraphModule):  # a branch, or the body of a loop
            setattr(host, name, _host_copy(part, mine))
    host.recompile()
    return host


def _index_of(module: Any, mine: str) -> int:
    """Return the number of the device that a graph computes on."""
    for node in module.graph.nodes:
        for value in pytree.tree_leaves(node.meta.get("val")):
            if isinstance(value, torch.Tensor) and value.device.type == mine:
                return value.device.index or 0
    return 0


def _keep_copies(module: Any, mine: str) -> None:
    """Make moves between the device and the host copies: the compiler sees one device only."""
    for node in list(module.graph.nodes):
        sources = [source.meta.get("val") for source in node.all_input_nodes]
        result = node.meta.get("val")
        if not isinstance(result, torch.Tensor) or node.op != "call_function":
            continue
        if any(
            isinstance(source, torch.Tensor)
            and source.ndim
            and (source.device.type == mine) != (result.device.type == mine)
            for source in sources[:1]
        ):
            with module.graph.inserting_after(node):
                kept = module.graph.call_function(torch.ops.aten.clone.default, (node,))
            node.replace_all_uses_with(
                kept, delete_user_cb=lambda user, kept=kept: user is not kept
            )
            kept.meta = dict(node.meta)


def _move_constants(module: Any, mine: str) -> None:
    for node in module.graph.nodes:
        if node.op == "get_attr":
            value = getattr(module, str(node.target), None)
            if isinstance(value, torch.Tensor) and value.device.type == mine:
                # Not assigned over a parameter: modules refuse plain tensors there.
                delattr(module, str(node.target))
                setattr(module, str(node.target), _host_constant(value))


def _host_constant(value: torch.Tensor) -> torch.Tensor:
    with _disable_current_modes(), torch.no_grad():
        host: torch.Tensor = torch.ops.cuda_morph_sim.as_host(value)
    if isinstance(value, torch.nn.Parameter):
        return torch.nn.Parameter(host, requires_grad=value.requires_grad)
    return host


def _host_example(value: Any, mine: str) -> Any:
    if not isinstance(value, torch.Tensor) or value.device.type != mine:
        return value
    if isinstance(value, FakeTensor):
        with value.fake_mode:
            return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=_HOST)
    return torch.ops.cuda_morph_sim.as_host(value)


def _on_aliases(
    compiled: Callable[[list[Any]], Any], outputs: _Outputs, draws: int | None
) -> Callable[[list[Any]], Any]:
    """Return a function over the device's tensors that runs code compiled for the host."""
    as_host = torch.ops.cuda_morph_sim.as_host.default
    as_device = torch.ops.cuda_morph_sim.as_device.default
    indices = outputs.indices
    tensor = torch.Tensor

    def run(arguments: list[Any]) -> list[Any]:
        host = [as_host(value) if isinstance(value, tensor) else value for value in arguments]
        arguments.clear()
        results = compiled(host)
        return [
            value if index is None or not isinstance(value, tensor) else as_device(value, index)
            for value, index in zip(results, indices, strict=True)
        ]

    def run_drawing(arguments: list[Any]) -> list[Any]:
        with _DeviceDraws(draws):
            return run(arguments)

    chosen = run if draws is None else run_drawing
    chosen._boxed_call = True  # type: ignore[attr-defined]
    return chosen


class _DeviceDraws:
    """Lets the host's code draw from the device's generator."""

    def __init__(self, index: int | None) -> None:
        from cuda_morph_sim.loader import loaded_module

        module: Any = loaded_module()
        self._generator = module.default_generators[index]

    def __enter__(self) -> None:
        self._host_state = torch.default_generator.get_state()
        torch.default_generator.set_state(self._generator.get_state())

    def __exit__(self, *_error: object) -> None:
        self._generator.set_state(torch.default_generator.get_state())
        torch.default_generator.set_state(self._host_state)
