"""Image data sets, read from the user's own copies without downloads and without torch."""

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
"""The names of the data sets that `load` can read."""

DATA_FOLDER = "FLTHEORY_DATA"
"""The environment variable that names the folder of all data sets."""


def load(name: str, folder: str | Path | None = None, *, verify: bool = True) -> ImageData:
    """Read a data set by name.

    Parameters
    ----------
    name : str
        A name in `NAMES`.
    folder : path, optional
        Folder of its files. By default, this is the folder NAME inside the folder given by the
        environment variable FLTHEORY_DATA, or inside ``data`` if that is not set. The digits need
        no folder.
    verify : bool
        Whether to refuse files that do not have the published checksums.

    Raises
    ------
    ValueError
        If the name is unknown, or the files are not accepted.
    ImportError
        If ``name`` is ``"digits"`` and scikit-learn is not installed.

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
