"""Reading data files and comparing them with their published checksums.

The module reads MNIST and Fashion-MNIST from IDX files, and CIFAR-10 from its binary version.

An IDX file begins with two zero bytes, a byte for the type of number (8: unsigned bytes), a byte
for the number of dimensions and each dimension as a big-endian 32-bit number.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fltheory import validation
from fltheory.files.read_file import check_no_result
from fltheory.hardware.datasets.images import ImageData, Labelled, check_labels, from_bytes
from fltheory.read_only import read_only

_NOT_PUBLISHED = "not the published files"


def existing_folder(folder: str | Path) -> Path:
    """Return ``folder`` as a path; raise ValueError if it is not a folder."""
    path = validation.path("folder", folder)
    if not path.is_dir():
        raise ValueError(f"folder must be an existing folder of data files, got {str(folder)!r}")
    return path


def read_file(folder: Path, name: str) -> bytes:
    """Return the content of ``name`` or, unzipped, of ``name.gz``.

    Raises
    ------
    ValueError
        If neither exists, or the file cannot be read or unzipped.
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
    """Return whether a file's content has its published checksum.

    Raises
    ------
    ValueError
        If it does not, and ``verify`` is true.
    """
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != md5 and verify:
        raise ValueError(
            f"{name} must be the published file, of MD5 {md5}, got one of MD5 {found}; "
            "verify=False, or data.published = false in an experiment, accepts it as it is"
        )
    return found == md5


def image_data(
    name: str, train: Labelled, test: Labelled, n_classes: int, *, published: bool
) -> ImageData:
    """Return a data set with a name that says whether its files are the published ones."""
    shown = name if published else f"{name} ({_NOT_PUBLISHED})"
    return ImageData(train, test, n_classes, shown, published)


_N_CLASSES = 10
_UNSIGNED_BYTES = 8
_TRAIN = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
_TEST = ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")

MNIST_MD5 = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}
"""Checksums of the unzipped files, which do not depend on how these were zipped."""

FASHION_MNIST_MD5 = {
    "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
    "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
    "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
    "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
}
"""Checksums of the unzipped files."""


def mnist(folder: str | Path, *, verify: bool = True) -> ImageData:
    """Read MNIST (LeCun, Cortes, Burges) from its four IDX files, gzipped or not.

    Parameters
    ----------
    folder : path
        Folder of the files.
    verify : bool
        Whether to refuse files without the published checksums.

    Raises
    ------
    ValueError
        If a file is missing, truncated or corrupt, a magic number is wrong, labels are not 0 .. 9,
        or a checksum is wrong.
    """
    return _read("MNIST", existing_folder(folder), MNIST_MD5, verify)


def fashion_mnist(folder: str | Path, *, verify: bool = True) -> ImageData:
    """Read Fashion-MNIST (Xiao, Rasul, Vollgraf 2017), with the parameters of `mnist`."""
    return _read("Fashion-MNIST", existing_folder(folder), FASHION_MNIST_MD5, verify)


def parse_idx(name: str, content: bytes, n_dims: int) -> NDArray[np.uint8]:
    """Return the unsigned bytes of an IDX file as an array of ``n_dims`` dimensions.

    Raises
    ------
    ValueError
        If the magic number is wrong, or the number of bytes does not match the header.
    """
    magic, wanted = content[:4], bytes([0, 0, _UNSIGNED_BYTES, n_dims])
    if magic != wanted:
        raise ValueError(f"{name} must open with 0x{wanted.hex()}, got 0x{magic.hex()}")
    start = 4 + 4 * n_dims
    if len(content) < start:
        raise ValueError(f"{name} must hold a header of {start} bytes, got {len(content)}")
    shape = tuple(np.frombuffer(content, ">u4", n_dims, offset=4).tolist())
    if len(content) - start != math.prod(shape):
        raise ValueError(
            f"{name} must hold {math.prod(shape)} bytes of data for shape {shape}, "
            f"got {len(content) - start}: truncated or corrupt"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _read(title: str, folder: Path, checksums: Mapping[str, str], verify: bool) -> ImageData:
    contents = {name: read_file(folder, name) for name in checksums}
    train, test = _labelled(contents, *_TRAIN), _labelled(contents, *_TEST)
    published = [
        is_published(name, contents[name], md5, verify=verify) for name, md5 in checksums.items()
    ]
    return image_data(title, train, test, _N_CLASSES, published=all(published))


def _labelled(contents: Mapping[str, bytes], images: str, labels: str) -> Labelled:
    pixels = parse_idx(images, contents[images], 3)
    classes = parse_idx(labels, contents[labels], 1).astype(np.int64)
    if len(pixels) != len(classes):
        raise ValueError(
            f"{labels} must hold a label for each of the {len(pixels)} images, got {len(classes)}"
        )
    check_labels(labels, classes, _N_CLASSES)
    return Labelled(from_bytes(pixels)[:, None], classes)


_SHAPE = (3, 32, 32)
_RECORD = 1 + 3 * 32 * 32
_SUBFOLDER = "cifar-10-batches-bin"
_TEST_BATCH = "test_batch.bin"

CIFAR10_MD5 = {
    "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
}
"""Checksums of the files in cifar-10-binary.tar.gz; only the archive's checksum is published."""


def cifar10(folder: str | Path, *, verify: bool = True) -> ImageData:
    """Read CIFAR-10 (Krizhevsky 2009) from its binary version.

    A record is a label followed by 1024 red, 1024 green and 1024 blue values, row by row.

    Parameters
    ----------
    folder : path
        Folder of the files ``data_batch_1.bin`` to ``data_batch_5.bin`` and ``test_batch.bin``, or
        its parent, which contains ``cifar-10-batches-bin``.
    verify : bool
        Whether to refuse files without the published checksums. Otherwise, other images (such as
        re-encoded ones) are accepted, and training batches may be missing; the name of the data set
        then says so.

    Raises
    ------
    ValueError
        If a file is missing, truncated or corrupt, labels are not 0 .. 9, or a checksum is wrong.
    """
    above = existing_folder(folder)
    here = above / _SUBFOLDER if (above / _SUBFOLDER).is_dir() else above
    names = [name for name in CIFAR10_MD5 if verify or name == _TEST_BATCH or _is_there(here, name)]
    contents = {name: read_file(here, name) for name in names}
    if list(contents) == [_TEST_BATCH]:
        raise ValueError(f"folder must hold data_batch_1.bin, got none in {str(here)!r}")
    parts = {name: _from_batch(name, content) for name, content in contents.items()}
    published = [
        is_published(name, content, CIFAR10_MD5[name], verify=verify)
        for name, content in contents.items()
    ]
    test = parts.pop(_TEST_BATCH)
    train = Labelled(
        read_only(np.concatenate([part.images for part in parts.values()])),
        np.concatenate([part.labels for part in parts.values()]),
    )
    complete = len(contents) == len(CIFAR10_MD5)
    return image_data("CIFAR-10", train, test, _N_CLASSES, published=complete and all(published))


def _is_there(folder: Path, name: str) -> bool:
    return (folder / name).is_file() or (folder / f"{name}.gz").is_file()


def _from_batch(name: str, content: bytes) -> Labelled:
    if not content or len(content) % _RECORD:
        raise ValueError(
            f"{name} must hold whole records of {_RECORD} bytes, got {len(content)} bytes: "
            "truncated or corrupt"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, _RECORD)
    labels = records[:, 0].astype(np.int64)
    check_labels(name, labels, _N_CLASSES)
    return Labelled(from_bytes(records[:, 1:]).reshape(-1, *_SHAPE), labels)
