"""Image data sets, read from the user's own copies; nothing is downloaded, torch is not needed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from fltheory import validation
from fltheory.hardware.datasets.files import cifar10, fashion_mnist, mnist
from fltheory.hardware.datasets.images import ImageData, digits

__all__ = ["load"]

_READERS: dict[str, Callable[..., ImageData]] = {
    "mnist": mnist,
    "fashion-mnist": fashion_mnist,
    "cifar10": cifar10,
}
NAMES = ("digits", *_READERS)
"""The data sets that `load` knows."""

DATA_FOLDER = "FLTHEORY_DATA"
"""The environment variable that names the folder of all data sets."""


def load(name: str, folder: str | Path | None = None, *, verify: bool = True) -> ImageData:
    """Read a data set by name.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    folder : path, optional
        Where its files are; by default the folder NAME inside the folder that the environment
        variable FLTHEORY_DATA names, or inside ``data``. The digits need none.
    verify : bool
        Whether to refuse files without the published checksums.

    Raises
    ------
    ValueError
        If the name is unknown, or its reader does not accept the files.
    ImportError
        For the digits, if scikit-learn is not installed.

    Examples
    --------
    >>> load("digits").n_classes
    10
    """
    validation.one_of("name", name, NAMES)
    if name == "digits":
        return digits()
    where = Path(os.environ.get(DATA_FOLDER, "data")) / name if folder is None else folder
    return _READERS[name](where, verify=verify)
