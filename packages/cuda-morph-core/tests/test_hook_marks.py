"""The marks of hooks are pluggy's, though core does without pluggy."""

import subprocess
import sys
import types

import pluggy
import pytest

from cuda_morph import hookspecs
from cuda_morph.plugin_status import PluginStatus
from cuda_morph.plugins import examine
from cuda_morph.records import Backend, Detection

BACKEND = Backend(
    name="chip", display_name="Chip", vendor="Chip Inc.", device_type="chip", adapter_module=None
)


def plugin(mark):
    def cuda_morph_backend():
        return BACKEND

    def ask():
        return Detection(available=False, reason="not plugged in")

    def cuda_morph_api_mappings(torch_version, limit=3):
        assert torch_version == "2.13"
        assert limit == 3
        return ()

    return types.SimpleNamespace(
        cuda_morph_backend=mark(cuda_morph_backend),
        ask=mark(specname="cuda_morph_detect")(ask),
        cuda_morph_api_mappings=mark(cuda_morph_api_mappings),
        unmarked=cuda_morph_backend.__class__,
    )


MARKERS = {"core's": hookspecs.hookimpl, "pluggy's": pluggy.HookimplMarker(hookspecs.PROJECT)}


@pytest.mark.parametrize("marker", MARKERS)
def test_plugin_is_understood_by_core_and_by_pluggy(marker):
    marked = plugin(MARKERS[marker])
    row = examine(marked, name="chip", torch_version="2.13")
    assert row.status is PluginStatus.UNAVAILABLE, row.reason
    assert set(row.hooks) == {
        "cuda_morph_backend",
        "cuda_morph_detect",
        "cuda_morph_api_mappings",
    }
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(marked)
    manager.check_pending()
    assert manager.hook.cuda_morph_backend() == [BACKEND]
    assert [answer.reason for answer in manager.hook.cuda_morph_detect()] == ["not plugged in"]


def test_marks_are_equal():
    one, other = (plugin(marker) for marker in MARKERS.values())
    for name in ("cuda_morph_backend", "ask"):
        assert vars(getattr(one, name)) == vars(getattr(other, name))


def test_unknown_option_is_an_error():
    with pytest.raises(TypeError, match="priority"):
        hookspecs.hookimpl(priority=1)


def test_loading_plugins_does_not_import_pluggy():
    code = "import sys; from cuda_morph.plugins import discover; discover(); print('pluggy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
