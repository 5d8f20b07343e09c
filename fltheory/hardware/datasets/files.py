"""Read data files whole, and compare them with their published checksums."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from pathlib import Path

from fltheory import validation
from fltheory.files.own_input import check_no_result
from fltheory.hardware.datasets.images import ImageData, Labelled

_NOT_PUBLISHED = "not the published files"


def existing_folder(folder: str | Path) -> Path:
    """Return ``folder`` as a path; ValueError if it is none."""
    path = validation.path("folder", folder)
    if not path.is_dir():
        raise ValueError(f"folder must be an existing folder of data files, got {str(folder)!r}")
    return path


def read_file(folder: Path, name: str) -> bytes:
    """Return the content of ``name`` or, unzipped, of ``name.gz``.

    Raises
    ------
    ValueError
        If neither is there, or what is there cannot be read or unzipped.
    """
    plain, zipped = folder / name, folder / f"{name}.gz"
    if not plain.is_file() and not zipped.is_file():
        raise ValueError(f"folder must hold {name}, or {name}.gz, got none in {str(folder)!r}")
    path = plain if plain.is_file() else zipped
    check_no_result(path)
    try:
        return plain.read_bytes() if path is plain else gzip.decompress(zipped.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} must be readable, got a truncated or corrupt file") from error


def is_published(name: str, content: bytes, md5: str, *, verify: bool) -> bool:
    """Compare a file's content with its published checksum.

    Raises
    ------
    ValueError
        If they differ and ``verify`` is asked for.
    """
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != md5 and verify:
        raise ValueError(
            f"{name} must be the published file, of MD5 {md5}, got one of MD5 {found}; "
            "verify=False, or data.published = false in an experiment, takes it as it is"
        )
    return found == md5


def image_data(
    name: str, train: Labelled, test: Labelled, n_classes: int, *, published: bool
) -> ImageData:
    """Return a data set under a name that says whether its files are the published ones."""
    shown = name if published else f"{name} ({_NOT_PUBLISHED})"
    return ImageData(train, test, n_classes, shown, published)
