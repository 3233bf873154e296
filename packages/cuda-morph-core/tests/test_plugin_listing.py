import sys

import pytest
from fake_distributions import FakeSite, source

from cuda_morph import plugins
from cuda_morph.plugins import PluginStatus


def test_two_distributions_of_one_name_are_both_refused(fake_site: FakeSite) -> None:
    first = fake_site.add("twin", dist="first-twin", version="1.1")
    second = fake_site.add("twin", dist="second-twin", version="2.2")
    fake_site.add("good")

    rows = [row for row in plugins.discover() if row.name == "twin"]

    assert [row.status for row in rows] == ["conflict", "conflict"]
    for row in rows:
        assert "first-twin 1.1" in row.reason
        assert "second-twin 2.2" in row.reason
    assert not {first, second} & set(sys.modules)
    assert fake_site.row("good").status is PluginStatus.READY


def test_blocking_one_distribution_ends_a_conflict(
    fake_site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_site.add("twin", dist="first-twin")
    fake_site.add("twin", dist="second-twin")
    monkeypatch.setenv("CUDA_MORPH_BLOCK", "first_twin")
    rows = {row.dist: row.status for row in plugins.discover() if row.name == "twin"}
    assert rows == {"first-twin": "blocked", "second-twin": "ready"}
    assert plugins.get_plugin("twin").dist == "second-twin"


@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_core_s_own_names_cannot_be_taken(fake_site: FakeSite, name: str) -> None:
    fake_site.add(name, source(name), dist="taker")
    rows = {row.dist: row.status for row in plugins.discover() if row.name == name}
    assert rows["taker"] == "conflict"
    assert plugins.get_plugin("cpu").status is PluginStatus.READY


def test_a_copy_behind_the_first_on_the_path_is_no_rival(
    fake_site: FakeSite, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind = tmp_path_factory.mktemp("behind")
    monkeypatch.setattr(sys, "path", [*sys.path, str(behind)])
    FakeSite.add(shadow := FakeSite(behind, monkeypatch), "good", version="0.1")
    monkeypatch.syspath_prepend(str(fake_site.root))
    fake_site.add("good", version="1.0")
    assert fake_site.row("good").version == "1.0"
    shadow.close()


def test_blocked_plugin_is_not_imported(
    fake_site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = fake_site.add("bad", "raise SystemError")
    fake_site.add("good")
    monkeypatch.setenv("CUDA_MORPH_BLOCK", " other , bad")
    row = fake_site.row("bad")
    assert (row.status, row.reason) == ("blocked", "blocked by CUDA_MORPH_BLOCK")
    assert module not in sys.modules
    assert fake_site.row("good").status is PluginStatus.READY
    assert plugins.unmatched_names() == ("CUDA_MORPH_BLOCK names 'other', which is not installed.",)


def test_allow_list_blocks_all_others_but_core_s_own(
    fake_site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_site.add("good")
    other = fake_site.add("other")
    monkeypatch.setenv("CUDA_MORPH_PLUGINS", "good")
    rows = {row.name: row.status for row in plugins.discover()}
    assert (rows["good"], rows["other"], rows["cpu"]) == ("ready", "blocked", "ready")
    assert other not in sys.modules
    monkeypatch.delenv("CUDA_MORPH_PLUGINS")
    assert fake_site.row("other").status is PluginStatus.READY


def test_unreadable_metadata_of_another_project(fake_site: FakeSite) -> None:
    fake_site.add("good")
    stray = fake_site.root / "stray-1.0.dist-info"
    stray.mkdir()
    (stray / "METADATA").write_text("Metadata-Version: 2.1\nName: stray\nVersion: 1\n")
    (stray / "entry_points.txt").write_bytes(b"[cuda_morph.plugins]\n\xff\xfe nonsense")
    nameless = fake_site.root / "nameless-1.0.dist-info"
    nameless.mkdir()
    (nameless / "entry_points.txt").write_text("[cuda_morph.plugins]\nnameless = nowhere\n")
    fake_site.changed()
    assert fake_site.row("good").status is PluginStatus.READY
    assert fake_site.row("cpu").status is PluginStatus.READY
    assert "nameless" not in plugins.plugin_names()


def test_name_and_version_are_those_of_the_metadata(fake_site: FakeSite) -> None:
    fake_site.add("good")
    info = fake_site.root / "cuda_morph_good-1.0.dist-info"
    text = "Metadata-Version: 2.1\r\nname:  Cuda.Morph-Good \r\nVersion: 1.0rc1\r\n\r\nName: no\r\n"
    (info / "METADATA").write_bytes(text.encode())
    row = fake_site.row("good")
    assert (row.dist, row.version) == ("Cuda.Morph-Good", "1.0rc1")


def test_a_newer_release_without_plugins_hides_an_older_one(
    fake_site: FakeSite, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_site.add("good", version="1.0")
    front = tmp_path_factory.mktemp("front")
    info = front / "Cuda_Morph.good-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cuda-morph-good\nVersion: 2.0\n")
    monkeypatch.syspath_prepend(str(front))
    fake_site.changed()
    assert "good" not in plugins.plugin_names()


def test_unreadable_value_of_an_entry_point(fake_site: FakeSite) -> None:
    fake_site.add("bad", attribute="no such:thing")
    assert fake_site.row("bad").status is PluginStatus.BROKEN
