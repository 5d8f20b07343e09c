"""Street View House Numbers, cropped digits (format 2), from its MATLAB files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from fltheory.hardware.datasets.files import existing_folder, image_data, is_published, read_file
from fltheory.hardware.datasets.images import ImageData, Labelled, check_labels, from_bytes

_N_CLASSES = 10
_IMAGE = (32, 32, 3)
_TRAIN, _TEST = "train_32x32.mat", "test_32x32.mat"

SVHN_MD5 = {
    "train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
    "test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
}
"""Checksums of the files as published."""


def svhn(folder: str | Path, *, verify: bool = True) -> ImageData:
    """Read SVHN's cropped digits (Netzer et al. 2011).

    The files call the digit 0 class 10; here it is class 0.

    Parameters
    ----------
    folder : path
        Of ``train_32x32.mat`` and ``test_32x32.mat``.
    verify : bool
        Whether to refuse files without the published checksums.

    Raises
    ------
    ValueError
        For a missing, truncated or corrupt file, labels that are not 1 .. 10, or another
        checksum.
    """
    here = existing_folder(folder)
    contents = {name: read_file(here, name) for name in SVHN_MD5}
    parts = {name: _labelled(name, content) for name, content in contents.items()}
    published = [
        is_published(name, content, SVHN_MD5[name], verify=verify)
        for name, content in contents.items()
    ]
    return image_data("SVHN", parts[_TRAIN], parts[_TEST], _N_CLASSES, published=all(published))


def _labelled(name: str, content: bytes) -> Labelled:
    pixels, marks = _arrays(name, content)
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[:3] != _IMAGE:
        raise ValueError(
            f"X of {name} must be unsigned bytes of shape (32, 32, 3, n), "
            f"got {pixels.dtype} of shape {pixels.shape}"
        )
    if marks.size != pixels.shape[3] or marks.dtype.kind not in "uif":
        raise ValueError(
            f"y of {name} must be {pixels.shape[3]} numbers, one an image, "
            f"got {marks.dtype} of shape {marks.shape}"
        )
    classes = marks.ravel().astype(np.int64) - 1
    check_labels(f"{name}, less one,", classes, _N_CLASSES)
    images = np.ascontiguousarray(from_bytes(pixels).transpose(3, 2, 0, 1))
    return Labelled(images, (classes + 1) % _N_CLASSES)


def _arrays(name: str, content: bytes) -> tuple[np.ndarray, np.ndarray]:
    from scipy.io import loadmat

    file: Any = io.BytesIO(content)  # its stubs know paths only
    try:
        variables: dict[str, Any] = loadmat(file, variable_names=("X", "y"))
    except Exception as error:  # loadmat fails in many ways on bytes that are no MATLAB file
        raise ValueError(f"{name} must be a MATLAB file, got a truncated or corrupt one") from error
    missing = {"X", "y"} - set(variables)
    if missing:
        raise ValueError(f"{name} must hold the variables X and y, got no {min(missing)}")
    return np.asarray(variables["X"]), np.asarray(variables["y"])
