import inspect
import re
import textwrap
from pathlib import Path

import pytest
from fake_distributions import HEADER, FakeSite, source

from cuda_morph import hookspecs, plugins
from cuda_morph.hook_table import HOOKS
from cuda_morph.plugin_status import USABLE
from cuda_morph.plugins import PluginStatus

GUIDE = Path(__file__).parents[3] / "docs" / "plugin-author-guide.md"
REQUIRED = {"cuda_morph_backend", "cuda_morph_detect"}


def example(hook: str) -> str:
    """The code under ``Example:`` in a hook's docstring."""
    text = inspect.getdoc(getattr(hookspecs, hook)) or ""
    return textwrap.dedent(text.partition("Example:\n")[2]).strip() + "\n"


def fenced(language: str, text: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def section(hook: str) -> str:
    """The guide's section of a hook."""
    text = GUIDE.read_text(encoding="utf-8")
    match = re.search(rf"^### `{hook}\(.*?(?=^##)", text, re.MULTILINE | re.DOTALL)
    assert match, f"{hook} has no section in {GUIDE.name}"
    return match[0]


def test_table_has_every_specification() -> None:
    specifications = {name for name in vars(hookspecs) if name.startswith("cuda_morph_")}
    assert specifications == set(HOOKS)
    assert {info.name for info in HOOKS.values() if info.required} == REQUIRED


@pytest.mark.parametrize("hook", HOOKS)
def test_table_agrees_with_the_signature(hook: str) -> None:
    info = HOOKS[hook]
    specification = getattr(hookspecs, hook)
    assert info.arguments == tuple(inspect.signature(specification).parameters)
    annotation = specification.__annotations__["return"]
    names = " | ".join(f"records.{record.__name__}" for record in info.records)
    single = names if info.required else f"{names} | None"
    assert annotation == (f"Iterable[{names}]" if info.many else single)
    assert info.vendor_library in {"no", "may", "yes"}
    assert info.called


@pytest.mark.parametrize("hook", HOOKS)
def test_example_of_every_hook_works_in_a_plugin(fake_site: FakeSite, hook: str) -> None:
    """The example alone, with the required hooks where it is about another one."""
    if hook in REQUIRED:
        (other,) = REQUIRED - {hook}
        code = example(hook) + example(other)
    else:
        code = source("mychip") + example(hook)
    fake_site.add("mychip", code)
    info = HOOKS[hook]

    found = plugins.collect(hook, plugin="mychip", **dict.fromkeys(info.arguments, "2.13.0"))

    assert {name for name, _ in found} == {"mychip"}
    assert {type(record) for _, record in found} == set(info.records)
    assert fake_site.row("mychip").status in USABLE
    assert hook in fake_site.row("mychip").hooks


@pytest.mark.parametrize("hook", HOOKS)
def test_wrong_answer_of_every_hook_is_seen(fake_site: FakeSite, hook: str) -> None:
    arguments = ", ".join(HOOKS[hook].arguments)
    wrong = f"\n@hookimpl\ndef {hook}({arguments}):\n    return 3.5\n"
    base = source("bad")
    if hook in REQUIRED:  # the last definition counts, as in any module
        base = (
            source("bad")
            .replace(f"def {hook}", f"def unused_{hook}")
            .replace("@hookimpl\ndef unused", "def unused")
        )
    fake_site.add("bad", base + wrong)
    plugins.discover()
    plugins.collect(hook, **dict.fromkeys(HOOKS[hook].arguments))
    row = fake_site.row("bad")
    assert row.status is PluginStatus.BROKEN
    assert hook in row.reason
    assert "float" in row.reason


@pytest.mark.parametrize("hook", HOOKS)
def test_guide_names_every_hook_with_its_exact_arguments(hook: str) -> None:
    arguments = ", ".join(HOOKS[hook].arguments)
    assert f"### `{hook}({arguments})`\n" in GUIDE.read_text(encoding="utf-8")


@pytest.mark.parametrize("hook", HOOKS)
def test_guide_has_the_example_of_every_hook(hook: str) -> None:
    assert example(hook) in fenced("python", section(hook))


@pytest.mark.parametrize("hook", HOOKS)
def test_guide_lists_the_fields_of_every_record(hook: str) -> None:
    text = section(hook)
    for record in HOOKS[hook].records:
        fields = [
            name if parameter.default is parameter.empty else f"{name}=..."
            for name, parameter in inspect.signature(record).parameters.items()
        ]
        assert f"`{record.__name__}({', '.join(fields)})`" in " ".join(text.split())


@pytest.mark.parametrize("hook", HOOKS)
def test_guide_table_agrees(hook: str) -> None:
    info = HOOKS[hook]
    record = " or ".join(f"`{record.__name__}`" for record in info.records)
    answer = f"any number of {record}" if info.many else record
    row = f"| `{hook}` | {answer} | {'yes' if info.required else 'no'} | {info.called} | {info.vendor_library} |"
    assert row in GUIDE.read_text(encoding="utf-8")


def test_guide_explains_every_status() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert all(f"| `{status.value}` |" in text for status in PluginStatus)


class TestFirstPlugin:
    """The plugin that the guide starts with, as a reader would copy it."""

    def install(self, site: FakeSite) -> None:
        text = GUIDE.read_text(encoding="utf-8")
        (entry,) = re.findall(
            r'\[project\.entry-points\."cuda_morph\.plugins"\]\n(\w+) = "([\w.]+)"',
            "".join(fenced("toml", text)),
        )
        code = next(code for code in fenced("python", text) if "cuda_morph_device_mapping" in code)
        assert len(code.splitlines()) <= 45
        site.add(entry[0], code, module=entry[1])

    def test_says_what_is_missing(self, fake_site: FakeSite) -> None:
        self.install(fake_site)
        row = fake_site.row("mychip", detect=True)
        assert row.status is PluginStatus.UNAVAILABLE
        assert "No module named 'torch_mychip'" in row.reason
        assert row.notes == ()

    @pytest.mark.parametrize(("count", "status"), [(0, "unavailable"), (4, "ready")])
    def test_counts_cards(self, fake_site: FakeSite, count: int, status: str) -> None:
        self.install(fake_site)
        adapter = fake_site.root / "torch_mychip.py"
        adapter.write_text(f"def device_count(): return {count}\n")
        fake_site.modules.append("torch_mychip")
        fake_site.changed()
        row = fake_site.row("mychip", detect=True)
        assert row.status == status
        assert row.detection is not None
        assert row.detection.device_count == count
        assert plugins.device_mapping("mychip").module == "torch.mychip"


def test_test_of_the_guide_passes_for_its_plugin(fake_site: FakeSite) -> None:
    TestFirstPlugin().install(fake_site)
    text = GUIDE.read_text(encoding="utf-8")
    code = next(code for code in fenced("python", text) if "examine(" in code)
    scope: dict[str, object] = {}
    exec(HEADER + code, scope)
    tests = [value for name, value in scope.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        assert callable(test)
        test()
