"""Labelled images, split into a training and a test set, and scikit-learn's digits."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fltheory.read_only import ReadOnlyArrays, read_only

Images: TypeAlias = NDArray[np.float32]
Labels: TypeAlias = NDArray[np.int64]

_BRIGHTEST = 255


@dataclass(frozen=True, eq=False)
class Labelled(ReadOnlyArrays):
    """Images with their class labels.

    Attributes
    ----------
    images : array, (n, channels, height, width), float32
        Values between 0 and 1.
    labels : array, (n,), int64
        Classes, counted from 0.

    Raises
    ------
    ValueError
        If a shape or type is different.
    """

    images: Images
    labels: Labels

    def __post_init__(self) -> None:
        if self.images.ndim != 4 or self.images.dtype != np.float32:
            raise ValueError(
                "images must be float32 of shape (n, channels, height, width), "
                f"got {self.images.dtype} of shape {self.images.shape}"
            )
        if self.labels.shape != self.images.shape[:1] or self.labels.dtype != np.int64:
            raise ValueError(
                f"labels must be {len(self.images)} of type int64, one per image, "
                f"got {self.labels.dtype} of shape {self.labels.shape}"
            )

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class ImageData:
    """A data set for classification.

    Attributes
    ----------
    train, test : Labelled
    n_classes : int
    name : str
        The name to print beside results; it says so if the files are not the published ones.
    published : bool
        Whether every file has the published checksum.

    Raises
    ------
    ValueError
        If a label is not a class, training and test images differ in shape, or there are no images.
    """

    train: Labelled
    test: Labelled
    n_classes: int
    name: str
    published: bool = True

    def __post_init__(self) -> None:
        if self.train.images.shape[1:] != self.test.images.shape[1:]:
            raise ValueError(
                f"test images of {self.name} must have the training images' shape "
                f"{self.train.images.shape[1:]}, got {self.test.images.shape[1:]}"
            )
        for kind, part in (("training", self.train), ("test", self.test)):
            if not len(part):
                raise ValueError(f"{kind} images of {self.name} must not be empty, got none")
            check_labels(self.name, part.labels, self.n_classes)

    def __repr__(self) -> str:
        return (
            f"ImageData({self.name}: {len(self.train)} + {len(self.test)} images of shape "
            f"{self.image_shape}, {self.n_classes} classes)"
        )

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(channels, height, width)."""
        channels, height, width = self.train.images.shape[1:]
        return channels, height, width

    @cached_property
    def digest(self) -> str:
        """A short name that changes with any image or label."""
        content = hashlib.sha256()
        for part in (self.train, self.test):
            content.update(repr(part.images.shape).encode())
            content.update(np.ascontiguousarray(part.images).data)
            content.update(np.ascontiguousarray(part.labels).data)
        return content.hexdigest()[:12]


def check_labels(name: str, labels: Labels, n_classes: int) -> None:
    """Raise ValueError, with ``name`` in the message, unless all labels are classes."""
    wrong = labels[(labels < 0) | (labels >= n_classes)]
    if wrong.size:
        raise ValueError(
            f"labels of {name} must lie between 0 and {n_classes - 1}, "
            f"got {wrong[0]} among {labels.size}"
        )


def from_bytes(pixels: NDArray[np.uint8]) -> Images:
    """Scale bytes 0 .. 255 to float32 between 0 and 1."""
    return read_only(np.divide(pixels, np.float32(_BRIGHTEST), dtype=np.float32))


_N_CLASSES = 10
_BRIGHTEST_DIGIT = 16
_EVERY = 5


def digits() -> ImageData:
    """Return scikit-learn's 1,797 digits of 8 x 8 pixels.

    Every fifth image of each class is a test image; nothing is random.

    Raises
    ------
    ImportError
        If scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError(
            "the digits come with scikit-learn, part of an optional extra: "
            "pip install 'fltheory[torch]'"
        ) from error
    pixels, classes = load_digits(return_X_y=True)
    images = (pixels / _BRIGHTEST_DIGIT).astype(np.float32).reshape(-1, 1, 8, 8)
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
