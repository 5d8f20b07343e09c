"""Files that are there whole, places for them, and all that must stay as it was around them."""

from __future__ import annotations

import errno
import os
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fltheory.files import whole_file as module
from fltheory.files.whole_file import remove_leftovers, whole_file, writable, write_whole


def found_in(folder: Path) -> dict[str, object]:
    """Return what is in a folder: where links lead, modes and contents of files."""
    return {
        str(path.relative_to(folder)): os.readlink(path)
        if path.is_symlink()
        else (stat.S_IMODE(path.stat().st_mode), path.read_text() if path.is_file() else "")
        for path in sorted(folder.rglob("*"))
    }


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


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
        ("taken/page.html", "html must be a path that can be written to, got "),
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


@pytest.mark.parametrize("name", ["x" * 300, "pipe", "loop", "missed", "gone/page.html"])
def test_places_that_would_fail_after_the_work_are_named_before(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "missed").symlink_to("disk/page.html")
    (tmp_path / "gone").symlink_to("disk")
    with pytest.raises(ValueError, match=r"^out must be"):
        writable("out", tmp_path / name)
    with pytest.raises(OSError, match=name):
        write_whole(tmp_path / name / "page.html" if name == "pipe" else tmp_path / name, "newer")
    assert not (tmp_path / "disk").exists()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o660, 0o666, 0o700, 0o400, 0o200, 0o000])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path, monkeypatch, mode: int) -> None:
    path = tmp_path / "page.html"
    path.write_text("older")
    path.chmod(mode)
    os.utime(path, (0, 0))
    monkeypatch.setattr(os, "access", lambda *asked: True)  # as root's is
    with umask(0o022), whole_file(path) as unfinished:
        assert stat.S_IMODE(unfinished.stat().st_mode) == 0o600
        unfinished.write_text("newer")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert time.time() - path.stat().st_mtime < 60
    path.chmod(0o600)
    assert found_in(tmp_path) == {"page.html": (0o600, "newer")}


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_usual_mode(tmp_path: Path, mask: int, mode: int) -> None:
    with umask(mask):
        write_whole(tmp_path / "page.html", "new")
    assert found_in(tmp_path) == {"page.html": (mode, "new")}


@pytest.mark.parametrize("may_give_away", [True, False])
def test_owner_and_group_are_kept_or_the_former_group_loses_nothing(
    tmp_path: Path, monkeypatch, may_give_away: bool
) -> None:
    path, asked = tmp_path / "page.html", []
    path.write_text("older")
    path.chmod(0o664)
    before = path.stat()

    def chown(file: Path, owner: int, group: int) -> None:
        asked.append((owner, group))
        if not may_give_away:
            raise PermissionError

    monkeypatch.setattr(os, "chown", chown)
    with whole_file(path) as unfinished:
        unfinished.write_text("newer")
    known = [(before.st_uid, before.st_gid), (-1, before.st_gid)]
    assert asked == known[: 1 if may_give_away else 2]
    assert found_in(tmp_path) == {"page.html": (0o664, "newer")}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize(("owner", "group"), [(1234, 4321), (0, 4321), (1234, 0)])
def test_root_keeps_the_owner(tmp_path: Path, monkeypatch, owner: int, group: int) -> None:
    path = tmp_path / "page.html"
    path.write_text("older")
    os.chown(path, owner, group)
    path.chmod(0o664)
    write_whole(path, "newer")
    assert (path.stat().st_uid, path.stat().st_gid) == (owner, group)
    monkeypatch.setattr(os, "chown", lambda *asked: (_ for _ in ()).throw(PermissionError()))
    write_whole(path, "newest")
    # The group of whoever writes is another one, if it is.
    assert found_in(tmp_path) == {"page.html": (0o604 if group else 0o664, "newest")}


def test_a_write_protected_file_is_refused(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "page.html"
    path.write_text("older")
    path.chmod(0o400)
    may = os.access
    monkeypatch.setattr(os, "access", lambda file, how: file != path and may(file, how))
    with pytest.raises(
        ValueError,
        match=r"^out must be a path that can be written to.*page.html'.*write-protected$",
    ):
        writable("out", path)
    with pytest.raises(OSError, match="write-protected"):
        write_whole(path, "newer")
    assert found_in(tmp_path) == {"page.html": (0o400, "older")}


OTHER_DISK = Path("/dev/shm")


@pytest.mark.parametrize(
    ("typed", "links", "replaced"),
    [
        ("page", {"page": "real"}, "real"),
        ("page", {"page": "./folder/../real"}, "real"),
        ("page", {"page": "second", "second": "real"}, "real"),
        ("page", {"page": "folder/page"}, "folder/page"),
        ("page", {"page": "new"}, "new"),
        ("page", {"page": "folder/new"}, "folder/new"),
        ("to/page", {"to": "folder"}, "folder/page"),
        ("to/new", {"to": "folder"}, "folder/new"),
        ("to/a/b/new", {"to": "folder"}, "folder/a/b/new"),
        ("to/page", {"to": "disk"}, "disk/page"),
        ("to/new", {"to": "disk"}, "disk/new"),
        ("page", {"page": "disk/page"}, "disk/page"),
        ("page", {"page": "disk/new"}, "disk/new"),
    ],
)
def test_links_stay_links(tmp_path: Path, typed: str, links: dict[str, str], replaced: str) -> None:
    work = tmp_path / "work"
    for folder in (work / "folder", work / "disk"):
        folder.mkdir(parents=True)
    if OTHER_DISK.is_dir():
        (work / "disk").rmdir()
        (work / "disk").symlink_to(OTHER_DISK / f"fltheory-test-{os.getpid()}")
        (work / "disk").resolve().mkdir()
    for file in ("real", "folder/page", "disk/page"):
        (work / file).write_text("older")
        (work / file).chmod(0o640)
    for link, target in links.items():
        (work / link).symlink_to(target)
    try:
        before = found_in(work) | {"disk/page": (work / "disk/page").read_text()}
        assert writable("out", work / typed) == work / typed
        with umask(0o022):
            write_whole(work / typed, "newer")
        place = (work / replaced).resolve()
        mode = 0o644 if place.name == "new" else 0o640
        assert (stat.S_IMODE(place.stat().st_mode), place.read_text()) == (mode, "newer")
        after = found_in(work) | {"disk/page": (work / "disk/page").read_text()}
        changed = {name for name, _ in before.items() ^ after.items()}
        assert changed - {"folder/a", "folder/a/b"} <= {replaced}
        assert not [name for name in os.listdir(place.parent) if name.startswith(".")]
    finally:
        for file in ("page", "new"):
            (work / "disk" / file).unlink(missing_ok=True)
        (work / "disk").resolve().rmdir()


def test_other_hard_links_keep_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("older")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    write_whole(tmp_path / "a", "newer")
    assert [(tmp_path / name).read_text() for name in "ab"] == ["newer", "older"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, MemoryError])
@pytest.mark.parametrize("name", ["page.html", "link", "new.html"])
@pytest.mark.parametrize("when", ["written", "replaced"])
def test_a_failed_write_changes_nothing(
    tmp_path: Path, monkeypatch, error: type[BaseException], name: str, when: str
) -> None:
    (tmp_path / "page.html").write_text("older")
    (tmp_path / "page.html").chmod(0o600)
    (tmp_path / "link").symlink_to("page.html")
    before = found_in(tmp_path)

    def fail(*arguments: object) -> None:
        raise error

    if when == "replaced":
        monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(error), whole_file(tmp_path / name) as unfinished:
        fail(unfinished.write_text("half")) if when == "written" else None
    assert found_in(tmp_path) == before


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


def killed(path: Path) -> str:
    """Have a process killed while it writes a file; return the name of what it leaves."""
    before = set(os.listdir(path.parent))
    child = os.fork()
    if not child:
        with whole_file(path) as unfinished:
            unfinished.write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    (left,) = set(os.listdir(path.parent)) - before
    return left


@pytest.mark.parametrize("through", ["page.html", "other.html", "link", None])
def test_what_a_killed_process_left_is_swept_by_the_next(tmp_path: Path, through: str) -> None:
    (tmp_path / "page.html").write_text("older")
    (tmp_path / "link").symlink_to("page.html")
    left = killed(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "older"
    if through is None:
        remove_leftovers(tmp_path)
        remove_leftovers(tmp_path / "none")
    else:
        write_whole(tmp_path / through, "newer")
    assert left not in os.listdir(tmp_path)


HIDDEN = (
    ".notes.2024",
    ".backup.20240101",
    ".page.html.20240101",
    ".page.html.{dead}",
    ".page.html.{own}",
    ".fltheory",
    ".fltheory.{dead}",
    ".fltheory-{host}",
    ".fltheory-{host}-{dead}",
    ".fltheory-{host}-{dead}-notes",
    ".fltheory-{host}-{dead}-01234567.txt",
    ".fltheory-{host}-{own}-01234567",
    ".fltheory-{host}-1-01234567",
    ".fltheory-0123456789ab-{dead}-01234567",
    ".fltheory-other-machine-{dead}-01234567",
    "fltheory-{host}-{dead}-01234567",
    "page.html.{dead}",
    ".page.html.swp",
)


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_others_hide_is_left_alone(tmp_path: Path, name: str, kind: str) -> None:
    left = killed(tmp_path / "page.html")
    _, host, dead, _ = left.split("-")
    hidden = tmp_path / name.format(host=host, dead=dead, own=os.getpid())
    (tmp_path / "target").write_text("kept")
    if kind == "folder":
        hidden.mkdir()
        (hidden / left).write_text("kept")
    elif kind == "link":
        hidden.symlink_to("target")
    else:
        hidden.write_text("kept")
    before = found_in(tmp_path)
    write_whole(tmp_path / "page.html", "newer")
    after = found_in(tmp_path)
    assert after.pop("page.html")
    assert after == {name: what for name, what in before.items() if name != left}


@pytest.mark.parametrize("is_first", [True, False])
def test_two_may_write_a_file_at_once(tmp_path: Path, is_first: bool) -> None:
    path = tmp_path / "page.html"
    with whole_file(path) as first:
        first.write_text("first")
        with whole_file(path) as second:
            second.write_text("second")
            assert first.read_text() == "first"
            if not is_first:
                write_whole(path, "third")
        assert path.read_text() == "second"
    assert found_in(tmp_path) == {"page.html": (0o644, "first")}


def test_another_machine_of_the_same_name_is_another(monkeypatch) -> None:
    names = set()
    for known in ("pid:[1]", "pid:[2]", None):
        module._host.cache_clear()
        monkeypatch.setattr(os, "readlink", lambda place, known=known: known or os.stat("/none"))
        names.add(module._host())
    module._host.cache_clear()
    assert len(names) == 3
