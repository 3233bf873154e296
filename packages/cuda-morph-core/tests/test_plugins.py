import importlib
import os
import sys
import textwrap

import pytest
from fake_distributions import BACKEND, DETECT, HEADER, FakeSite, source

from cuda_morph import plugins
from cuda_morph.errors import PluginError, SettingError, UnknownBackendError
from cuda_morph.plugins import PluginStatus

NO_BACKEND = HEADER + DETECT.format(detection="available=True")
NO_DETECT = HEADER + BACKEND.format(name="bad", more="")
COLLECTIVES = "\n@hookimpl\ndef cuda_morph_collectives():\n    {body}\n"
NEW_HOOK = "\n@hookimpl\ndef cuda_morph_teleport(where):\n    return 1\n"
TWICE = """
@hookimpl(specname="cuda_morph_detect")
def another():
    return Detection(available=False, reason="contradiction")
"""
WRAPPER = """
@hookimpl(wrapper=True)
def cuda_morph_dtypes():
    return (yield)
"""
MUTE = 'class Mute(Exception):\n    def __str__(self): raise ValueError("no")\nraise Mute\n'
ABORT = 'class Abort(BaseException): pass\nraise Abort("driver gone")\n'

# What is wrong, the plugin's code, and what its row must say.
BROKEN = {
    "raises on import": ("raise OSError('libchip.so not found')", "OSError: libchip.so not found"),
    "imports what is missing": ("import chip_runtime_x", "No module named 'chip_runtime_x'"),
    "does not parse": ("def (", "SyntaxError"),
    "raises BaseException": (ABORT, "Abort: driver gone"),
    "raises an unreadable error": (MUTE, "Mute"),
    "is no plugin": ("", "required hook cuda_morph_backend is missing"),
    "has no backend": (NO_BACKEND, "cuda_morph_backend is missing"),
    "has no detection": (NO_DETECT, "cuda_morph_detect is missing"),
    "forgot the marker": (
        NO_DETECT + "def cuda_morph_detect(): ...",
        "cuda_morph_detect is not marked with @hookimpl",
    ),
    "backend raises": (
        source("bad").replace("return Backend", "raise KeyError('x') or Backend"),
        "hook cuda_morph_backend raised KeyError",
    ),
    "backend is a dict": (
        source("bad").replace("return Backend", "return dict"),
        "hook cuda_morph_backend must return Backend, but returned dict",
    ),
    "backend is None": (
        source("bad").replace("return Backend", "Backend"),
        "must return Backend, but returned None",
    ),
    "a tuple is a string": (
        source("bad", more="runtime_requires='torch-chip'"),
        "field 'runtime_requires' must be tuple[str, ...], got str 'torch-chip'",
    ),
    "a string is a number": (
        source("bad", more="homepage=3"),
        "field 'homepage' must be str, got int 3",
    ),
    "a field is newer than core": (
        source("bad", more="color='red'"),
        "may be written for a newer core",
    ),
    "the names differ": (
        source("other"),
        "named 'bad' but its backend calls itself 'other'",
    ),
    "the spec is no version": (source("bad", more="spec='one'"), "not of the form major.minor"),
    "an argument is unknown": (
        source("bad", extra="\n@hookimpl\ndef cuda_morph_dtypes(color): return ()"),
        "does not fit the specification",
    ),
    "a hook is there twice": (source("bad", extra=TWICE), "cuda_morph_detect once"),
    "a hook is a wrapper": (source("bad", extra=WRAPPER), "cuda_morph_dtypes once, unwrapped"),
}


def test_built_in_cpu_is_found_once(fake_site: FakeSite) -> None:
    row = fake_site.row("cpu", detect=True)
    assert row.status is PluginStatus.READY
    assert row.builtin
    assert row.dist == "cuda-morph-core"
    assert row.detection is not None
    assert row.detection.available


def test_built_in_cpu_is_found_without_metadata(
    fake_site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.distributions", lambda: ())
    assert [row.name for row in plugins.discover(refresh=True)] == ["cpu"]


def test_good_plugin(fake_site: FakeSite) -> None:
    fake_site.add("good", version="3.2")
    row = fake_site.row("good")
    assert (row.status, row.dist, row.version) == ("ready", "cuda-morph-good", "3.2")
    assert row.spec == "1.0"
    assert row.hooks == ("cuda_morph_backend", "cuda_morph_detect")
    assert row.detection is None
    assert 0 < row.load_seconds < 60
    assert row.notes == ()


def test_entry_point_may_name_an_object(fake_site: FakeSite) -> None:
    functions = textwrap.indent(
        BACKEND.format(name="object", more="").replace("()", "(self)")
        + DETECT.format(detection="available=True").replace("()", "(self)"),
        "    ",
    )
    fake_site.add(
        "object", f"{HEADER}class Plugin:\n{functions}\nplugin = Plugin()", attribute="plugin"
    )
    fake_site.add("class", f"{HEADER}class Plugin:\n{functions}", attribute="Plugin")
    assert fake_site.row("object").status is PluginStatus.READY
    assert fake_site.row("class").status is PluginStatus.BROKEN
    assert "names a class" in fake_site.row("class").reason


def test_names_are_listed_without_importing(fake_site: FakeSite) -> None:
    module = fake_site.add("lazy", "raise SystemError('imported')")
    assert "lazy" in plugins.plugin_names()
    assert module not in sys.modules


def test_asking_for_one_plugin_imports_no_other(fake_site: FakeSite) -> None:
    fake_site.add("good")
    other = fake_site.add("other")
    assert plugins.get_plugin("good").status is PluginStatus.READY
    assert plugins.collect("cuda_morph_detect", plugin="good")
    assert other not in sys.modules


def test_asking_for_an_unknown_plugin(fake_site: FakeSite) -> None:
    fake_site.add("good")
    with pytest.raises(UnknownBackendError, match=r"(?s)'goood'.*Did you mean 'good'.*cpu"):
        plugins.get_plugin("goood")


@pytest.mark.parametrize("case", BROKEN)
def test_broken_plugin_has_a_row_and_hurts_nobody(fake_site: FakeSite, case: str) -> None:
    code, message = BROKEN[case]
    fake_site.add("bad", code)
    fake_site.add("good")

    row = fake_site.row("bad")

    assert row.status is PluginStatus.BROKEN
    assert message in row.reason
    assert row.error is not None
    assert fake_site.row("good", detect=True).status is PluginStatus.READY


@pytest.mark.parametrize("stop", ["KeyboardInterrupt", "SystemExit"])
def test_wish_to_stop_passes(fake_site: FakeSite, stop: str) -> None:
    fake_site.add("stopper", f"raise {stop}")
    with pytest.raises(BaseException) as caught:
        plugins.discover()
    assert type(caught.value).__name__ == stop


def test_original_error_is_kept(fake_site: FakeSite) -> None:
    fake_site.add("bad", "raise OSError('libchip.so')")
    fake_site.add(
        "worse", source("worse").replace("return Backend", "raise KeyError(7)\n    Backend")
    )
    assert isinstance(fake_site.row("bad").error, OSError)
    assert isinstance(fake_site.row("worse").error, KeyError)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 5", "must return an iterable of CollectiveBackend, got int"),
        ("return None", "must return an iterable of CollectiveBackend, got None"),
        ("return 'nccl'", "must return an iterable of CollectiveBackend, got str"),
        ("return CollectiveBackend(name='a')", "an iterable of CollectiveBackend, got Coll"),
        (
            "yield CollectiveBackend(name='a'); yield 'b'",
            "must return CollectiveBackend, but returned at position 1 str",
        ),
        ("yield CollectiveBackend(name='a'); raise OSError('gone')", "raised OSError: gone"),
        ("yield CollectiveBackend(name='a', ops=['x'])", "field 'ops' must be tuple[str, ...]"),
        ("yield CollectiveBackend(name='a', env_map={'A': 1})", "field 'env_map' must be Mapping"),
        ("while True: yield CollectiveBackend(name='a')", "more than 100000 records"),
    ],
)
def test_wrong_answer_breaks_one_plugin(fake_site: FakeSite, body: str, message: str) -> None:
    fake_site.add("bad", source("bad", extra=COLLECTIVES.format(body=body)))
    good = "yield CollectiveBackend(name='fine'); yield CollectiveBackend(name='too')"
    fake_site.add("good", source("good", extra=COLLECTIVES.format(body=good)))
    fake_site.only_fakes()

    found = plugins.collect("cuda_morph_collectives")

    assert [(name, record.name) for name, record in found] == [
        ("cpu", "gloo"),
        ("good", "fine"),
        ("good", "too"),
    ]
    row = fake_site.row("bad")
    assert row.status is PluginStatus.BROKEN
    assert row.reason.startswith("Plugin 'bad': hook cuda_morph_collectives ")
    assert message in row.reason
    assert fake_site.row("good").status is PluginStatus.READY


def test_plugin_asked_by_name_fails_with_its_error(fake_site: FakeSite) -> None:
    body = COLLECTIVES.format(body="raise OSError('gone')")
    fake_site.add("bad", source("bad", extra=body))
    with pytest.raises(PluginError, match="OSError: gone") as caught:
        plugins.collect("cuda_morph_collectives", plugin="bad")
    assert isinstance(caught.value.__cause__, OSError)


def test_detection_that_raises_breaks_the_contract(fake_site: FakeSite) -> None:
    code = source("bad").replace("return Detection", "raise RuntimeError('driver') or Detection")
    fake_site.add("bad", code)
    fake_site.add("good")
    assert fake_site.row("bad").status is PluginStatus.READY
    assert fake_site.row("bad", detect=True).status is PluginStatus.BROKEN
    assert fake_site.row("good", detect=True).status is PluginStatus.READY


def test_detection_sets_status_and_reason(fake_site: FakeSite) -> None:
    fake_site.add("absent", source("absent", detection="available=False, reason='no card'"))
    fake_site.add("silent", source("silent", detection="available=False"))
    rows = {row.name: row for row in plugins.discover(detect=True)}
    assert (rows["absent"].status, rows["absent"].reason) == ("unavailable", "no card")
    assert "no reason" in rows["silent"].reason
    assert rows["absent"].detect_seconds is not None


def test_detection_is_asked_anew(fake_site: FakeSite) -> None:
    code = source("moody").replace("available=True", "available=len(calls.append(1) or calls) > 1")
    fake_site.add("moody", "calls = []\n" + code)
    assert plugins.get_plugin("moody", detect=True).status is PluginStatus.UNAVAILABLE
    row = plugins.get_plugin("moody", detect=True)
    assert (row.status, row.reason) == (PluginStatus.READY, "")


def test_unavailable_plugin_still_answers(fake_site: FakeSite) -> None:
    extra = "\n@hookimpl\ndef cuda_morph_dtypes():\n    yield DtypeSupport(dtype='int8', support=Support.FULL)"
    fake_site.add("absent", source("absent", detection="available=False, reason='x'", extra=extra))
    plugins.discover(detect=True)
    assert len(plugins.collect("cuda_morph_dtypes", plugin="absent")) == 1


@pytest.mark.parametrize(
    ("spec", "status", "text"),
    [
        ("1.0", "ready", ""),
        ("1.7", "ready", "newer than this core's 1.0"),
        ("2.0", "incompatible", "upgrade cuda-morph-core"),
        ("0.9", "incompatible", "upgrade cuda-morph-chip"),
    ],
)
def test_spec_negotiation(fake_site: FakeSite, spec: str, status: str, text: str) -> None:
    fake_site.add("chip", source("chip", more=f"spec={spec!r}"))
    fake_site.add("good")
    row = fake_site.row("chip")
    assert row.status == status
    assert row.spec == spec
    assert text in row.reason + " ".join(row.notes)
    assert bool(row.notes) == (spec == "1.7")
    assert fake_site.row("good").status is PluginStatus.READY


def test_incompatible_plugin_is_not_called(fake_site: FakeSite) -> None:
    extra = COLLECTIVES.format(body="raise SystemExit")
    fake_site.add("chip", source("chip", more="spec='9.0'", extra=extra))
    assert "chip" not in dict(plugins.collect("cuda_morph_collectives"))
    with pytest.raises(PluginError, match="incompatible"):
        plugins.collect("cuda_morph_collectives", plugin="chip")


def test_unknown_hook_is_a_note(fake_site: FakeSite) -> None:
    fake_site.add("new", source("new", more="spec='1.4'", extra=NEW_HOOK))
    row = fake_site.row("new", detect=True)
    assert row.status is PluginStatus.READY
    assert any("cuda_morph_teleport" in note for note in row.notes)
    assert "cuda_morph_teleport" not in row.hooks


def test_newer_argument_with_a_default_is_accepted(fake_site: FakeSite) -> None:
    extra = "\n@hookimpl\ndef cuda_morph_dtypes(color='red'):\n    yield DtypeSupport(dtype=color, support=Support.FULL)"
    fake_site.add("new", source("new", extra=extra))
    assert plugins.collect("cuda_morph_dtypes", plugin="new")[0][1].dtype == "red"


@pytest.mark.parametrize(
    ("code", "status"),
    [("raise OSError('x')", "broken"), (source("bad", more="spec='2.0'"), "incompatible")],
)
def test_strict_mode_raises(
    fake_site: FakeSite, monkeypatch: pytest.MonkeyPatch, code: str, status: str
) -> None:
    fake_site.add("bad", code)
    fake_site.add("good")
    fake_site.only_fakes()
    monkeypatch.setenv("CUDA_MORPH_STRICT", "1")
    for call in (plugins.discover, lambda: plugins.collect("cuda_morph_detect")):
        with pytest.raises(PluginError, match=rf"bad \(cuda-morph-bad\) is {status}"):
            call()
    assert plugins.get_plugin("good").status is PluginStatus.READY


def test_strict_mode_raises_for_a_conflict_but_not_for_an_absent_card(
    fake_site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_site.add("absent", source("absent", detection="available=False, reason='x'"))
    fake_site.only_fakes()
    monkeypatch.setenv("CUDA_MORPH_STRICT", "1")
    assert plugins.discover(detect=True)
    fake_site.add("twin", dist="first")
    fake_site.add("twin", dist="second")
    with pytest.raises(PluginError, match=r"twin \(first\) is conflict.*twin \(second\)"):
        plugins.discover()


def test_slow_plugin_is_named(fake_site: FakeSite) -> None:
    fake_site.add("slow", "import time; time.sleep(1.05)\n" + source("slow"))
    row = fake_site.row("slow")
    assert row.status is PluginStatus.READY
    assert row.load_seconds > 1
    assert any("to load" in note for note in row.notes)


def test_results_are_kept_until_refreshed(fake_site: FakeSite) -> None:
    module = fake_site.add("good", "import os\nos.environ['GOOD_LOADS'] += 'x'\n" + source("good"))
    fake_site.monkeypatch.setenv("GOOD_LOADS", "")
    plugins.discover()
    sys.modules.pop(module)
    plugins.discover()
    assert os.environ["GOOD_LOADS"] == "x"
    plugins.discover(refresh=True)
    assert os.environ["GOOD_LOADS"] == "xx"


def test_plugin_that_asks_while_it_is_imported(fake_site: FakeSite) -> None:
    code = "from cuda_morph import plugins\nplugins.discover()\n" + source("eager")
    fake_site.add("eager", code)
    fake_site.add("good")
    assert fake_site.row("eager").status is PluginStatus.READY
    assert fake_site.row("good").status is PluginStatus.READY


def test_collect_checks_hook_and_arguments(fake_site: FakeSite) -> None:
    with pytest.raises(SettingError, match="Did you mean 'cuda_morph_dtypes'"):
        plugins.collect("cuda_morph_dtype")
    with pytest.raises(SettingError, match=r"takes the arguments \(torch_version\), got \(\)"):
        plugins.collect("cuda_morph_capabilities")


def test_device_mapping_has_a_default(fake_site: FakeSite) -> None:
    fake_site.add("plain")
    extra = "\n@hookimpl\ndef cuda_morph_device_mapping():\n    return DeviceMapping(target='own')"
    fake_site.add("own", source("own", extra=extra))
    none = "\n@hookimpl\ndef cuda_morph_device_mapping():\n    return None"
    fake_site.add("none", source("none", extra=none))
    assert plugins.device_mapping("plain").target == "fake"
    assert plugins.device_mapping("own").target == "own"
    assert plugins.device_mapping("none").target == "fake"


def test_examine_judges_every_hook(fake_site: FakeSite) -> None:
    good = importlib.import_module(fake_site.add("good"))
    assert plugins.examine(good, name="good").detection is not None
    assert plugins.examine(good, name="other").status is PluginStatus.BROKEN
    extra = COLLECTIVES.format(body="return 1")
    bad = importlib.import_module(fake_site.add("bad", source("bad", extra=extra)))
    assert "cuda_morph_collectives" in plugins.examine(bad, name="bad").reason


def test_row_as_dict_is_json(fake_site: FakeSite) -> None:
    json = importlib.import_module("json")
    fake_site.add("good", source("good", detection="available=True, details={'driver': '7'}"))
    fake_site.add("bad", "raise OSError('x')")
    rows = {
        row.name: json.loads(json.dumps(row.as_dict())) for row in plugins.discover(detect=True)
    }
    assert rows["good"]["details"] == {"driver": "7"}
    assert (rows["bad"]["status"], rows["bad"]["error"]) == ("broken", "OSError")
