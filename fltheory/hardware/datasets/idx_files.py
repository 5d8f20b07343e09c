"""MNIST and Fashion-MNIST, from their IDX files.

An IDX file opens with two zero bytes, a byte for the type of number (8: unsigned bytes), a byte
for the number of dimensions and each dimension as a big-endian 32-bit number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fltheory.hardware.datasets.files import existing_folder, image_data, is_published, read_file
from fltheory.hardware.datasets.images import ImageData, Labelled, check_labels, from_bytes

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
"""Checksums of the unzipped files, so that it does not matter who zipped them."""

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
        Where they lie.
    verify : bool
        Whether to refuse files without the published checksums.

    Raises
    ------
    ValueError
        For a missing, truncated or corrupt file, a wrong magic number, labels that are not
        0 .. 9, or another checksum.
    """
    return _read("MNIST", existing_folder(folder), MNIST_MD5, verify)


def fashion_mnist(folder: str | Path, *, verify: bool = True) -> ImageData:
    """Read Fashion-MNIST (Xiao, Rasul, Vollgraf 2017); all else is as for `mnist`."""
    return _read("Fashion-MNIST", existing_folder(folder), FASHION_MNIST_MD5, verify)


def parse_idx(name: str, content: bytes, n_dims: int) -> NDArray[np.uint8]:
    """Return the unsigned bytes of an IDX file as an array of ``n_dims`` dimensions.

    Raises
    ------
    ValueError
        For another magic number, or more or fewer bytes than the header promises.
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
