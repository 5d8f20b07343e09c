"""Files that are there whole, and places for them."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fltheory.files.whole_file import remove_leftovers, writable, write_whole


def test_a_place_is_free_and_nothing_is_made_there(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "page.html"
    assert writable("html", path, ".html") == path
    assert list(tmp_path.iterdir()) == []
    write_whole(path, "text")
    assert path.read_text() == "text"
    assert writable("html", path) == path


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("", "html must be a file, got the folder "),
        ("taken/page.html", "html must be where a file can be written, got "),
        ("page.pdf", "html must end in .html or .htm, got "),
    ],
)
def test_other_places_are_named(tmp_path: Path, place: str, message: str) -> None:
    (tmp_path / "taken").write_text("")
    suffixes = (".html", ".htm") if place == "page.pdf" else ()
    with pytest.raises(ValueError, match=message):
        writable("html", tmp_path / place, *suffixes)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_locked_folder_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ValueError, match="where a file can be written"):
        writable("html", tmp_path / "page.html")


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_older_file_survives_a_failed_write(tmp_path: Path, monkeypatch, error) -> None:
    path = tmp_path / "page.html"
    path.write_text("older")
    monkeypatch.setattr(Path, "replace", lambda self, target: (_ for _ in ()).throw(error()))
    with pytest.raises(error):
        write_whole(path, "newer")
    assert path.read_text() == "older"
    assert [item.name for item in tmp_path.iterdir()] == ["page.html"]


def test_a_full_disk_leaves_the_file_before_and_names_it(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "page.html"
    path.write_text("older")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as raised:
        write_whole(path, "newer")
    assert raised.value.filename == str(path)
    assert [item.name for item in tmp_path.iterdir()] == ["page.html"]
    assert path.read_text() == "older"


def test_what_killed_processes_left_is_swept(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    names = (f".a.{dead.pid}", f".b.{dead.pid}", f".a.{os.getpid()}", ".a.x", f"a.{dead.pid}")
    for name in names:
        (tmp_path / name).write_text("half")
    remove_leftovers(tmp_path, "a")
    assert {item.name for item in tmp_path.iterdir()} == set(names[1:])
    remove_leftovers(tmp_path)
    assert {item.name for item in tmp_path.iterdir()} == set(names[2:])
    remove_leftovers(tmp_path / "none")


@pytest.mark.parametrize("name", ["x" * 300, "x" * 250, "pipe", "loop"])
def test_places_that_would_fail_after_the_work_are_named_before(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ValueError, match=r"^out must be"):
        writable("out", tmp_path / name)
