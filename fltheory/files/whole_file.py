"""Files that are there whole, or as they were before."""

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
"""Of the name of a file that is being written; machine, process and a random number follow."""


def writable(name: str, path: Path, *suffixes: str) -> Path:
    """Return a path that a file can be written to; asked before long work, it saves it.

    Parameters
    ----------
    name : str
        The argument, as the error names it.
    path : Path
    *suffixes : str
        Endings that it may have, any if none are given.

    Raises
    ------
    ValueError
        For another ending, a folder, a name that is too long, or a place where nothing can be
        written.
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
    """Raise ValueError, or an OSError, if no file can be written there."""
    if path.is_dir():
        raise ValueError(f"{name} must be a file, got the folder {str(path)!r}")
    place = _place(path)
    if path.exists() and not path.is_file():
        raise ValueError(f"{name} must be a file, got {str(path)!r}, which is not one")
    if path.is_symlink():
        # A folder that is not there behind a link may be on a disk that is not there now.
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
    # Some places deny what their permissions promise: /proc, or a disk that is mounted to be read.
    with tempfile.TemporaryFile(dir=ancestor):
        pass


def _place(path: Path) -> Path:
    """Return where a file is, or will be, that links may lead to."""
    place = Path(os.path.realpath(path))
    if place.is_symlink():
        raise OSError(errno.ELOOP, "the link leads to itself", str(path))
    return place


def _check_replaced(place: Path) -> None:
    """Raise OSError for what may not be written, though its folder lets it be replaced."""
    if place.exists() and not place.is_file():
        raise OSError(errno.EINVAL, "it is not a file", str(place))
    if place.exists() and not os.access(place, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is write-protected", str(place))


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file in one go, so that an interrupt, a full disk or a kill leaves the one before.

    Raises
    ------
    OSError
        If it cannot be written; the error names the file.
    """
    path = Path(path)
    with whole_file(path) as unfinished:
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Let a file be written under another name, and take its place once it is on the disk.

    A link stays one: what it leads to is replaced. Owner, group and mode of a file that is
    replaced are kept, as far as the system allows; of its hard links the others keep what was
    there before.

    Raises
    ------
    OSError
        If it cannot be written; the error names the file.
    """
    place = _place(path)
    # A name that no other program, machine, process or thread has, or had.
    unfinished = place.with_name(f"{_BEGINNING}{_host()}-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        _check_replaced(place)
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(place.parent)
        # What only its owner could read is for nobody else in the meantime.
        mode = 0o600 if place.exists() else 0o666
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        yield unfinished
        _keep_on_disk(unfinished)
        if place.exists():
            _make_like(unfinished, place)
        unfinished.replace(place)
        _keep_on_disk(place.parent)
    except OSError as error:
        # What a user knows is the file, not the name that it has meanwhile.
        raise type(error)(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _make_like(new: Path, old: Path) -> None:
    """Give a file the owner, group, mode and access list of the one whose place it takes."""
    before = old.stat()
    for owner in (before.st_uid, -1):  # only root gives files away, but any member of a group
        with suppress(OSError):
            os.chown(new, owner, before.st_gid)
            break
    with suppress(OSError):  # some disks know no modes
        shutil.copystat(old, new)
        os.utime(new)
    if new.stat().st_gid != before.st_gid:
        # What the former group was allowed is not for another one.
        new.chmod(stat.S_IMODE(before.st_mode) & ~stat.S_IRWXG)


def _keep_on_disk(path: Path) -> None:
    """Have a file, or a folder's list of files, survive a loss of power."""
    if os.name != "posix" and path.is_dir():
        return  # no other system opens folders
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@cache
def _host() -> str:
    """Return what tells this machine, and this container on it, from others that share a disk.

    Names of machines repeat ("localhost"), and process 7 of a container is another one outside.
    """
    known = [platform.node()]
    with suppress(OSError):
        known.append(os.readlink("/proc/self/ns/pid"))
        known.append(Path("/etc/machine-id").read_text("ascii", "replace"))
    return blake2s("\n".join(known).encode(), digest_size=6).hexdigest()


def remove_leftovers(folder: Path) -> None:
    """Take away what killed processes of this machine left half written in a folder, if any."""
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
    except OSError:  # of somebody else
        return True
    return True
