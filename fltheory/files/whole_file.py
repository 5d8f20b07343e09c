"""Files that are there whole, or as they were before."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# The end of the name of a file that is being written: a point and the writing process.
_LONGEST_END = len("..4194304")


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
            f"{name} must be where a file can be written, got {str(path)!r}: {error.strerror}"
        ) from error
    if suffixes and path.suffix not in suffixes:
        raise ValueError(f"{name} must end in {' or '.join(suffixes)}, got {str(path)!r}")
    return path


def _check_place(name: str, path: Path) -> None:
    """Raise ValueError, or an OSError, if no file can be written there."""
    if path.is_dir():
        raise ValueError(f"{name} must be a file, got the folder {str(path)!r}")
    if os.path.lexists(path) and not path.is_file():
        raise ValueError(f"{name} must be a file, got {str(path)!r}, which is none")
    ancestor = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
    if not ancestor.is_dir() or not os.access(ancestor, os.W_OK | os.X_OK):
        raise ValueError(f"{name} must be where a file can be written, got {str(path)!r}")
    longest = os.pathconf(ancestor, "PC_NAME_MAX") - _LONGEST_END
    for part in (path.name, *(parent.name for parent in path.absolute().parents)):
        if len(os.fsencode(part)) > longest:
            raise ValueError(
                f"{name} must be made of names of at most {longest} bytes, got {str(path)!r}"
            )
    # Some places deny what their permissions promise: /proc, or a disk that is mounted to be read.
    with tempfile.TemporaryFile(dir=ancestor):
        pass


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

    Raises
    ------
    OSError
        If it cannot be written; the error names the file.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent, path.name)
        yield unfinished
        _keep_on_disk(unfinished)
        unfinished.replace(path)
        _keep_on_disk(path.parent)
    except OSError as error:
        # What a user knows is the file, not the name that it has meanwhile.
        raise type(error)(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _keep_on_disk(path: Path) -> None:
    """Have a file, or a folder's list of files, survive a loss of power."""
    if os.name != "posix" and path.is_dir():
        return  # no other system opens folders
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Take away what killed processes left half written in a folder.

    Parameters
    ----------
    folder : Path
        Where there may be none at all.
    name : str, optional
        Of the file that was being written; of any by default.
    """
    with suppress(OSError):
        for entry in os.listdir(folder):
            whole, _, process = entry.rpartition(".")
            if not (whole.startswith(".") and process.isdecimal()):
                continue
            if whole[1:] == (name or whole[1:]) and not _is_running(int(process)):
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
