"""Files appear whole or not at all, whatever happens and whatever is there already."""

import errno
import os
import subprocess
import sys
import threading

import pytest

from cuda_morph import atomic_file
from cuda_morph.atomic_file import AtomicFile, replace_content
from cuda_morph.errors import MorphError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path):
    (tmp_path / "plain").touch()
    file = AtomicFile(tmp_path / "report.html")
    assert names(tmp_path) == ["plain"]  # the check leaves nothing
    file.write("größer")
    assert (tmp_path / "report.html").read_bytes() == "größer".encode()
    replace_content(tmp_path / "secret", b"", mode=0o600)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    (tmp_path / "secret").unlink()
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1
    assert names(tmp_path) == ["plain", "report.html"]


def test_an_old_file_keeps_its_mode_and_a_link_keeps_pointing_to_it(tmp_path):
    (tmp_path / "far").mkdir()
    old, link = tmp_path / "far" / "old", tmp_path / "link"
    old.write_text("old")
    old.chmod(0o640)
    link.symlink_to(old)
    AtomicFile(link).write("new")
    assert link.is_symlink()
    assert old.read_text() == "new"
    assert old.stat().st_mode & 0o777 == 0o640
    assert names(tmp_path) == ["far", "link"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError])
def test_what_is_interrupted_leaves_the_old_content_and_no_litter(tmp_path, monkeypatch, stop):
    file = tmp_path / "report"
    file.write_text("old")

    def interrupted(*_):
        raise stop

    monkeypatch.setattr(atomic_file.Path, "replace", interrupted)
    with pytest.raises(stop):
        replace_content(file, b"new" * 9999)
    assert file.read_text() == "old"
    assert names(tmp_path) == ["report"]


def test_a_full_disk_is_said_and_leaves_the_old_content(tmp_path):
    """A limit on the size of files stands for the disk."""
    (tmp_path / "report").write_text("old")
    program = """
import resource, signal, sys
from pathlib import Path
from cuda_morph.atomic_file import AtomicFile
file = AtomicFile(Path(sys.argv[1]))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
file.write("x" * 5000)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "report")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "MorphError: [CM-E15] The report cannot be written" in done.stderr
    assert (tmp_path / "report").read_text() == "old"
    assert names(tmp_path) == ["report"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (".", "s a directory"),
        ("no/such/folder/x", "No such file"),
        ("file/x", "Not a directory"),
        ("a\0b", "null"),
        ("n" * 300, "too long"),
        ("loop", "symbolic links"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_work(tmp_path, path, words):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(MorphError, match=words) as caught:
        AtomicFile(tmp_path / path, "list", hint="Try another.")
    assert caught.value.code == "CM-E15"
    assert caught.value.message.startswith("The list cannot be written to ")
    assert caught.value.hint == "Try another."
    assert names(tmp_path) == ["file", "loop"]


def test_a_file_of_somebody_else_is_not_replaced(tmp_path, monkeypatch):
    file = tmp_path / "theirs"
    file.write_text("old")
    file.chmod(0o400)
    access = os.access  # the tests may run as root, who may write everything
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and access(path, mode))
    with pytest.raises(MorphError, match=os.strerror(errno.EACCES)):
        AtomicFile(file)


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    AtomicFile(pipe).write("through")
    reader.join(10)
    assert read == ["through"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("to_file", [True, False])
def test_standard_output_by_name(tmp_path, to_file):
    program = """
import sys
from pathlib import Path
from cuda_morph.atomic_file import AtomicFile
print("before", flush=True)
AtomicFile(Path("/dev/stdout")).write("report\\n")
print("after", flush=True)
"""
    command = [sys.executable, "-c", program]
    if to_file:
        with (tmp_path / "out").open("a") as stream:
            subprocess.run(command, stdout=stream, check=True)
        said = (tmp_path / "out").read_text()
    else:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == "before\nreport\nafter\n"


def test_characters_without_bytes(tmp_path):
    file = AtomicFile(tmp_path / "report")
    file.write("a\udcffb")
    assert file.path.read_bytes() == b"a\\udcffb"
    file.write("a\udcffb", errors="surrogateescape")
    assert file.path.read_bytes() == b"a\xffb"
    with pytest.raises(MorphError, match="surrogates"):
        file.write("a\udcffb", errors="strict")


def test_the_folder_is_that_of_the_beginning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = AtomicFile(atomic_file.Path("report"))
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    file.write("x")
    assert names(tmp_path) == ["other", "report"]
