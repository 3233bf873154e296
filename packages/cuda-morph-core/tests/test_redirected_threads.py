import sys
import threading
import types

import pytest

from cuda_morph.patching import Journal

SOURCE = """
def plain(a, b=2):
    return "own"

def open_ended(*args, **kwargs):
    return "own"
"""


@pytest.fixture
def frequent_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_a_thread_that_has_entered_a_redirected_function_still_finds_its_target(frequent_switches):
    module = types.ModuleType("library")
    exec(SOURCE, vars(module))
    names = set(vars(module))
    problems = []
    done = threading.Event()

    def work():
        while not done.is_set():
            try:
                assert {module.plain(1), module.open_ended(1)} <= {"own", "ours"}
            except BaseException as error:
                problems.append(repr(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20_000):
        journal = Journal()
        journal.redirect_function(module.plain, lambda _a, _b: "ours")
        journal.redirect_function(module.open_ended, lambda *_args, **_kwargs: "ours")
        journal.rollback()
    done.set()
    for thread in threads:
        thread.join()
    assert problems == []
    assert set(vars(module)) == names
