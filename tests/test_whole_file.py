"""Files that are there whole, and places for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fltheory.whole_file import writable, write_whole


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
