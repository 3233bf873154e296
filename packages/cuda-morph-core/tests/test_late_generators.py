"""Default generators of device modules that list none before they are initialised, or never."""

import types

import pytest
import torch

from cuda_morph.device.generators import LateGenerators, can_be_found
from cuda_morph.errors import BackendUnavailableError


def module_that_fills_when_initialised():
    module = types.ModuleType("torch.mychip")
    module.default_generators = ()
    module.initialised = 0

    def init():
        module.initialised += 1
        module.default_generators = (torch.Generator(), torch.Generator())

    module.init = init
    return module


def test_the_device_is_initialised_at_first_use_only():
    module = module_that_fills_when_initialised()
    generators = LateGenerators(module, lambda: 2)
    assert can_be_found(module)
    assert len(generators) == 2
    assert module.initialised == 0
    assert generators[1] is module.default_generators[1]
    assert list(generators) == list(module.default_generators)
    assert module.initialised == 1


class PerDevice:
    """The random functions of a device module, over generators of the CPU."""

    __name__ = "torch.mychip"

    def __init__(self):
        self.current = 0
        self.own = [torch.Generator(), torch.Generator()]

    def get_rng_state(self, device):
        return self.own[device].get_state()

    def set_rng_state(self, state, device):
        self.own[device].set_state(state)

    def manual_seed(self, seed):
        self.own[self.current].manual_seed(seed)

    def seed(self):
        self.own[self.current].seed()

    def initial_seed(self):
        return self.own[self.current].initial_seed()

    def device(self, index):
        outer = self

        class Context:
            def __enter__(self):
                self.before, outer.current = outer.current, index

            def __exit__(self, *_):
                outer.current = self.before

        return Context()


def test_functions_stand_for_generators():
    module = PerDevice()
    generators = LateGenerators(module, lambda: 2)
    one = generators[1]
    assert one.manual_seed(7) is one
    assert (one.initial_seed(), module.own[0].initial_seed() == 7) == (7, False)
    state = one.get_state()
    before = torch.rand(3, generator=module.own[1])
    one.set_state(state)
    assert torch.equal(torch.rand(3, generator=module.own[1]), before)
    assert one.seed() == module.own[1].initial_seed() != 7
    assert module.current == 0


def test_a_module_without_either_is_refused():
    module = types.ModuleType("torch.mychip")
    assert not can_be_found(module)
    module.init = lambda: None
    with pytest.raises(BackendUnavailableError, match="lists no default generator"):
        LateGenerators(module, lambda: 1)[0]
