"""Writing files atomically: a file is either complete or unchanged."""

from __future__ import annotations

import errno
import os
import platform
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2s
from pathlib import Path

_BEGINNING = ".fltheory-"
"""Prefix of temporary file names; machine, process and a random number follow."""


def writable(name: str, path: Path, *suffixes: str) -> Path:
    """Return a path after checking, before long work, that a file can be written to it.

    Parameters
    ----------
    name : str
        Name of the argument in error messages.
    path : Path
    *suffixes : str
        Allowed suffixes of the file name; any suffix is allowed if none are given.

    Raises
    ------
    ValueError
        If the suffix is not allowed, the path is a folder, the name is too long, or no file can be
        written there.
    """
    try:
        _check_place(name, path)
    except OSError as error:
        raise ValueError(
            f"{name} must be a path that can be written to, got {str(path)!r}: {error.strerror}"
        ) from error
    if suffixes and path.suffix not in suffixes:
        raise ValueError(f"{name} must end in {' or '.join(suffixes)}, got {str(path)!r}")
    return path


def _check_place(name: str, path: Path) -> None:
    """Raise ValueError or OSError if no file can be written to ``path``."""
    if path.is_dir():
        raise ValueError(f"{name} must be a file, got the folder {str(path)!r}")
    place = _place(path)
    if path.exists() and not path.is_file():
        raise ValueError(f"{name} must be a file, got {str(path)!r}, which is not one")
    if path.is_symlink():
        # A missing folder behind a link may be on a disk that is not mounted.
        ancestor = place.parent
    else:
        ancestor = next(one for one in path.absolute().parents if os.path.lexists(one))
    if not ancestor.is_dir() or not os.access(ancestor, os.W_OK | os.X_OK):
        raise ValueError(f"{name} must be a path that can be written to, got {str(path)!r}")
    _check_replaced(place)
    longest = os.pathconf(ancestor, "PC_NAME_MAX")
    for part in (path.name, *(parent.name for parent in path.absolute().parents)):
        if len(os.fsencode(part)) > longest:
            raise ValueError(
                f"{name} must have names of at most {longest} bytes, got {str(path)!r}"
            )
    # Permissions are not enough: /proc or a read-only mount still refuses files.
    with tempfile.TemporaryFile(dir=ancestor):
        pass


def _place(path: Path) -> Path:
    """Return the real path of a file, following links, whether or not it exists."""
    place = Path(os.path.realpath(path))
    if place.is_symlink():
        raise OSError(errno.ELOOP, "the link leads to itself", str(path))
    return place


def _check_replaced(place: Path) -> None:
    """Raise OSError for a write-protected file, even if its folder allows replacing the file."""
    if place.exists() and not place.is_file():
        raise OSError(errno.EINVAL, "it is not a file", str(place))
    if place.exists() and not os.access(place, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is write-protected", str(place))


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file atomically: after an interrupt, a kill or on a full disk, the old one remains.

    Raises
    ------
    OSError
        If the file cannot be written. The message names it.
    """
    path = Path(path)
    with whole_file(path) as unfinished:
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Provide a temporary path for writing, and move the file into place once it is on disk.

    If ``path`` is a link, its target is replaced. The owner, group and mode of a replaced file are
    kept as far as the system allows. Other hard links to the file keep the old content.

    Raises
    ------
    OSError
        If the file cannot be written. The message names it.
    """
    place = _place(path)
    # This is a name that no other program, machine, process or thread uses or has used.
    unfinished = place.with_name(f"{_BEGINNING}{_host()}-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        _check_replaced(place)
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(place.parent)
        # A file readable only by its owner must not be readable by others in the meantime.
        mode = 0o600 if place.exists() else 0o666
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        yield unfinished
        _keep_on_disk(unfinished)
        if place.exists():
            _make_like(unfinished, place)
        unfinished.replace(place)
        _keep_on_disk(place.parent)
    except OSError as error:
        # The user knows the final name, not the temporary one.
        raise type(error)(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _make_like(new: Path, old: Path) -> None:
    """Give a file the owner, group, mode and access list of the file that it replaces."""
    before = old.stat()
    for owner in (before.st_uid, -1):  # only root can change the owner
        with suppress(OSError):
            os.chown(new, owner, before.st_gid)
            break
    with suppress(OSError):  # some file systems have no modes
        shutil.copystat(old, new)
        os.utime(new)
    if new.stat().st_gid != before.st_gid:
        # The old group's permissions must not pass to another group.
        new.chmod(stat.S_IMODE(before.st_mode) & ~stat.S_IRWXG)


def _keep_on_disk(path: Path) -> None:
    """Flush a file, or a folder's list of files, to disk."""
    if os.name != "posix" and path.is_dir():
        return  # only POSIX systems can open folders
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@cache
def _host() -> str:
    """Return a key that identifies this machine and container among those that share a disk.

    Several machines may have the same name ("localhost"), and process 7 in a container is a
    different process from process 7 outside.
    """
    known = [platform.node()]
    with suppress(OSError):
        known.append(os.readlink("/proc/self/ns/pid"))
        known.append(Path("/etc/machine-id").read_text("ascii", "replace"))
    return blake2s("\n".join(known).encode(), digest_size=6).hexdigest()


def remove_leftovers(folder: Path) -> None:
    """Remove incomplete files that killed processes of this machine left in a folder."""
    own = re.compile(rf"{re.escape(_BEGINNING)}{_host()}-([0-9]+)-[0-9a-f]{{8}}")
    with suppress(OSError):
        for entry in os.listdir(folder):
            found = own.fullmatch(entry)
            if found and not _is_running(int(found[1])):
                with suppress(OSError):
                    (folder / entry).unlink()


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # another user's file
        return True
    return True
