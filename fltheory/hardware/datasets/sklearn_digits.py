"""The handwritten digits that come with scikit-learn: small, and nothing to download."""

from __future__ import annotations

import numpy as np

from fltheory.hardware.datasets.images import ImageData, Labelled

_N_CLASSES = 10
_BRIGHTEST = 16
_EVERY = 5


def digits() -> ImageData:
    """Return scikit-learn's 1,797 digits of 8 x 8 pixels.

    Of each class every fifth image is a test image; nothing is random.

    Raises
    ------
    ImportError
        Where scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError(
            "the digits come with scikit-learn, part of an optional extra: "
            "pip install 'fltheory[torch]'"
        ) from error
    pixels, classes = load_digits(return_X_y=True)
    images = (pixels / _BRIGHTEST).astype(np.float32).reshape(-1, 1, 8, 8)
    labels = classes.astype(np.int64)
    rank = np.empty(labels.size, dtype=np.intp)
    for label in range(_N_CLASSES):
        of_class = np.flatnonzero(labels == label)
        rank[of_class] = np.arange(of_class.size)
    held_out = rank % _EVERY == _EVERY - 1
    return ImageData(
        Labelled(images[~held_out], labels[~held_out]),
        Labelled(images[held_out], labels[held_out]),
        _N_CLASSES,
        "digits",
    )
