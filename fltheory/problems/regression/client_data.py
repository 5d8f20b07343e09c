"""Checks of clients' samples and labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray


def check_shapes(data: Sequence[NDArray[np.generic]]) -> None:
    """Raise ValueError unless there is a client and all have samples (n_i, d) of one size d."""
    if not data:
        raise ValueError("features must hold the data of at least one client, got none")
    for client, part in enumerate(data):
        if part.ndim != 2 or part.size == 0 or part.shape[1] != data[0].shape[1]:
            raise ValueError(
                f"features must be (n_i, d) with n_i, d >= 1 and the same d for each client, "
                f"got {part.shape} for client {client}"
            )


def check_label_shapes(marks: Sequence[NDArray[np.generic]], sizes: Sequence[int]) -> None:
    """Raise ValueError unless each client has one label a sample."""
    shapes, wanted = [part.shape for part in marks], [(size,) for size in sizes]
    if shapes != wanted:
        raise ValueError(f"labels must be one a sample, of shapes {wanted}, got {shapes}")


def checked_features(features: Sequence[ArrayLike]) -> list[NDArray[np.floating]]:
    """Return each client's samples (n_i, d), float32 if all are, else float64."""
    data = [np.asarray(part) for part in features]
    check_shapes(data)
    for client, part in enumerate(data):
        if part.dtype.kind not in "fiu" or not np.isfinite(part).all():
            raise ValueError(f"features must be finite numbers, got others for client {client}")
    exact = all(part.dtype == np.float32 for part in data)
    return [part.astype(np.float32 if exact else np.float64, copy=False) for part in data]


def checked_labels(
    labels: Sequence[ArrayLike], sizes: list[int], n_classes: int
) -> list[NDArray[np.intp]]:
    """Return each client's labels (n_i,), between 0 and ``n_classes - 1``."""
    marks = [np.asarray(part) for part in labels]
    check_label_shapes(marks, sizes)
    for client, part in enumerate(marks):
        if part.dtype.kind not in "iu" or part.min() < 0 or part.max() >= n_classes:
            raise ValueError(
                f"labels must be whole numbers 0 .. {n_classes - 1}, got others for client {client}"
            )
    return [part.astype(np.intp) for part in marks]
