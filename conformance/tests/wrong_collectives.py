"""A plugin on the simulated device whose collectives are damaged, one by one, in every rank."""

from __future__ import annotations

from dataclasses import replace

from cuda_morph.hookspecs import hookimpl
from cuda_morph.records import CollectiveBackend, DeviceMapping
from cuda_morph_sim import plugin as sim


@hookimpl
def cuda_morph_backend():
    return replace(sim.cuda_morph_backend(), name="mychip")


@hookimpl
def cuda_morph_detect():
    return sim.cuda_morph_detect()


@hookimpl
def cuda_morph_device_mapping():
    return DeviceMapping(target="sim", module="torch.sim", init=start)


@hookimpl
def cuda_morph_collectives():
    yield CollectiveBackend(name="simccl", device_types=("sim",))


@hookimpl
def cuda_morph_capabilities():
    return sim.cuda_morph_capabilities()


def start():
    from cuda_morph_sim.loader import load

    load("sim")
    import torch.distributed as dist

    damages = (
        broadcast_from_the_first,
        maximum_is_minimum,
        reduce_to_the_first,
        gather_in_reverse,
        halve_the_scattered,
        scatter_the_own,
        lose_the_last_part,
        zero_what_arrives,
        let_everybody_pass,
        forget_objects,
        turn_what_is_gathered,
    )
    for damage in damages:
        damage(dist)


def broadcast_from_the_first(dist):
    right = dist.broadcast
    dist.broadcast = lambda tensor, src=None, **more: right(tensor, 0, **more)


def maximum_is_minimum(dist):
    right = dist.all_reduce

    def all_reduce(tensor, op=dist.ReduceOp.SUM, *rest, **more):
        return right(tensor, dist.ReduceOp.MIN if op == dist.ReduceOp.MAX else op, *rest, **more)

    dist.all_reduce = all_reduce


def reduce_to_the_first(dist):
    right = dist.reduce
    dist.reduce = lambda tensor, dst=None, **more: right(tensor, 0, **more)


def gather_in_reverse(dist):
    right = dist.all_gather
    dist.all_gather = lambda parts, tensor, *rest: right(parts[::-1], tensor, *rest)


def halve_the_scattered(dist):
    right = dist.reduce_scatter

    def reduce_scatter(output, inputs, *rest):
        right(output, inputs, *rest)
        output.div_(2)

    dist.reduce_scatter = reduce_scatter


def scatter_the_own(dist):
    right = dist.scatter

    def scatter(tensor, parts=None, src=None):
        right(tensor, parts and parts[::-1], src)

    dist.scatter = scatter


def lose_the_last_part(dist):
    right = dist.all_to_all

    def all_to_all(outputs, inputs):
        right(outputs, inputs)
        outputs[-1].zero_()

    dist.all_to_all = all_to_all


def zero_what_arrives(dist):
    right = dist.recv

    def recv(tensor, src=None, **more):
        source = right(tensor, src, **more)
        tensor.zero_()
        return source

    dist.recv = recv


def let_everybody_pass(dist):
    dist.barrier = lambda *_arguments, **_options: None


def forget_objects(dist):
    dist.gather_object = lambda obj, gathered=None, dst=None: None


def turn_what_is_gathered(dist):
    right = dist.all_gather_into_tensor
    dist.all_gather_into_tensor = lambda output, tensor, *rest, **more: right(
        output, tensor.flip(0), *rest, **more
    )
