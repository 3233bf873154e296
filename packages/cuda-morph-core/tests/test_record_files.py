"""Records kept in JSON files: what is read, and how a wrong entry is named."""

import json
from pathlib import Path

import pytest

from cuda_morph.errors import PluginError
from cuda_morph.record_files import read_error_texts, read_map, read_records, read_surface
from cuda_morph.records import ApiMapping, ErrorCode, Support, Treatment, VersionRow

CODES = {
    "about": "for readers",
    "groups": [
        {
            "common": {"family": "mcError", "source": "mychip.h"},
            "rows": [
                {"code": "2", "name": "MC_OOM", "meaning": "full", "semantic": "out_of_memory"},
                {"code": "3", "name": "MC_BAD", "meaning": "bad", "family": "other"},
            ],
        },
        {"rows": [{"code": "4", "name": "MC_X", "meaning": "x"}]},
    ],
}


@pytest.fixture
def write(tmp_path):
    def to_file(content, name="data.json") -> Path:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return to_file


def rows(*entries, **common):
    return {"groups": [{"common": common, "rows": list(entries)}]}


def test_groups_share_fields_and_rows_override_them(write):
    found = read_records(write(CODES), ErrorCode)
    assert [(row.code, row.family, row.source) for row in found] == [
        ("2", "mcError", "mychip.h"),
        ("3", "other", "mychip.h"),
        ("4", "", ""),
    ]


def test_words_become_enumerations_and_null_stays(write):
    mapping = {"name": "torch.cuda.x", "treatment": "redirect", "support": "not_yet"}
    [found] = read_records(write(rows(mapping)), ApiMapping)
    assert found.treatment is Treatment.REDIRECT
    assert found.support is Support.NOT_YET
    [row] = read_records(
        write(rows({"adapter": "1", "torch": "2.13", "sdk": None}), "v.json"), VersionRow
    )
    assert row.sdk is None


def test_a_file_is_read_once(write):
    path = write(CODES)
    first = read_records(path, ErrorCode)
    path.write_text("no longer JSON")
    assert read_records(path, ErrorCode) is first


GOOD = {"code": "1", "name": "A", "meaning": "a"}


@pytest.mark.parametrize(
    ("content", "mention"),
    [
        ("{", "is not JSON"),
        ("[]", "must hold an object"),
        ("{}", "groups is missing or no list"),
        ({"groups": [{}]}, "groups[0].rows is missing"),
        ({"groups": [[]]}, "groups[0] is no object"),
        (rows(GOOD, "text"), "groups[0].rows[1] must be an object, got 'text'"),
        (rows(GOOD, {"code": "2", "name": "B"}), "groups[0].rows[1] missing 1 required"),
        (rows({**GOOD, "colour": "red"}), "unexpected keyword argument 'colour'"),
        (rows({**GOOD, "code": 1}), "groups[0].rows[0] field 'code' must be str, got int 1"),
    ],
)
def test_a_wrong_entry_is_named(write, content, mention):
    path = write(content)
    with pytest.raises(PluginError) as caught:
        read_records(path, ErrorCode)
    assert mention in caught.value.message
    assert "data.json" in caught.value.message
    assert str(path) in caught.value.hint


def test_a_word_outside_the_enumeration_is_named(write):
    path = write(rows({"name": "torch.cuda.x", "treatment": "magic"}))
    with pytest.raises(PluginError, match=r"rows\[0\].treatment is 'magic', which is none of redi"):
        read_records(path, ApiMapping)


def test_a_missing_file_is_an_error_of_the_plugin(tmp_path):
    with pytest.raises(PluginError, match="cannot be read: No such file"):
        read_records(tmp_path / "absent.json", ErrorCode)


def test_a_surface_is_read(write):
    names = [{"name": "Stream", "kind": "class", "parameters": ["device"]}, {"name": "seed"}]
    content = {"module": "torch.mychip", "version": "1", "source": "wheel", "names": names}
    found = read_surface(write(content))
    assert found.module == "torch.mychip"
    assert found.names[0].parameters == ("device",)
    assert found.names[1].parameters is None


def test_a_surface_needs_its_source(write):
    content = {"module": "torch.mychip", "version": "1", "names": []}
    with pytest.raises(PluginError, match="field 'source' must be str"):
        read_surface(write(content))


def test_a_table_is_read_and_holds_texts_only(write):
    assert read_map(write({"map": {"cudaMalloc": "mcMalloc"}})) == {"cudaMalloc": "mcMalloc"}
    with pytest.raises(PluginError, match=r"map\['a'\] must be a text, got 1"):
        read_map(write({"map": {"a": 1}}, "other.json"))
    with pytest.raises(PluginError, match="renamed is missing"):
        read_map(write({}, "third.json"), "renamed")


def test_error_texts_are_written_from_the_table(write):
    path = write(CODES)
    assert read_error_texts(path, ["MC_OOM"]) == {"out_of_memory": "MC_OOM (2): full"}
    with pytest.raises(PluginError, match="MC_NONE is not there"):
        read_error_texts(path, ["MC_OOM", "MC_NONE"])
