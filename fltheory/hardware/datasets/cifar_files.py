"""CIFAR-10, from its binary layout: no pickles, which could run code."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fltheory.hardware.datasets.files import existing_folder, image_data, is_published, read_file
from fltheory.hardware.datasets.images import ImageData, Labelled, check_labels, from_bytes
from fltheory.read_only import read_only

_N_CLASSES = 10
_SHAPE = (3, 32, 32)
_RECORD = 1 + 3 * 32 * 32
_SUBFOLDER = "cifar-10-batches-bin"
_TEST = "test_batch.bin"

CIFAR10_MD5 = {
    "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
}
"""Checksums of the files in cifar-10-binary.tar.gz, whose own is published."""


def cifar10(folder: str | Path, *, verify: bool = True) -> ImageData:
    """Read CIFAR-10 (Krizhevsky 2009) from its binary version.

    A record is a label and 1024 red, green and blue values each, row by row.

    Parameters
    ----------
    folder : path
        Of the files ``data_batch_1.bin`` to ``data_batch_5.bin`` and ``test_batch.bin``, or
        the one above, which holds ``cifar-10-batches-bin``.
    verify : bool
        Whether to refuse files without the published checksums. If not, other images, say
        re-encoded ones, are taken, and training batches may be missing; the data set's name
        then says so.

    Raises
    ------
    ValueError
        For a missing, truncated or corrupt file, labels that are not 0 .. 9, or another
        checksum.
    """
    above = existing_folder(folder)
    here = above / _SUBFOLDER if (above / _SUBFOLDER).is_dir() else above
    names = [name for name in CIFAR10_MD5 if verify or name == _TEST or _is_there(here, name)]
    contents = {name: read_file(here, name) for name in names}
    if list(contents) == [_TEST]:
        raise ValueError(f"folder must hold data_batch_1.bin, got none in {str(here)!r}")
    parts = {name: _labelled(name, content) for name, content in contents.items()}
    published = [
        is_published(name, content, CIFAR10_MD5[name], verify=verify)
        for name, content in contents.items()
    ]
    test = parts.pop(_TEST)
    train = Labelled(
        read_only(np.concatenate([part.images for part in parts.values()])),
        np.concatenate([part.labels for part in parts.values()]),
    )
    complete = len(contents) == len(CIFAR10_MD5)
    return image_data("CIFAR-10", train, test, _N_CLASSES, published=complete and all(published))


def _is_there(folder: Path, name: str) -> bool:
    return (folder / name).is_file() or (folder / f"{name}.gz").is_file()


def _labelled(name: str, content: bytes) -> Labelled:
    if not content or len(content) % _RECORD:
        raise ValueError(
            f"{name} must hold whole records of {_RECORD} bytes, got {len(content)} bytes: "
            "truncated or corrupt"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, _RECORD)
    labels = records[:, 0].astype(np.int64)
    check_labels(name, labels, _N_CLASSES)
    return Labelled(from_bytes(records[:, 1:]).reshape(-1, *_SHAPE), labels)
