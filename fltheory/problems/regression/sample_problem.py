"""The common part of losses on clients' own samples with a ridge penalty.

The module also checks samples and labels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fltheory import validation
from fltheory.problems.base import checked_target_weights, weights_or_uniform
from fltheory.read_only import ReadOnlyArrays, read_only
from fltheory.validation import FloatArray


class SampleProblem(ReadOnlyArrays, ABC):
    """``F_i(x) = mean_j f_ij(x) + ridge/2 ||x||^2`` over client i's samples.

    Such losses have no noise level or dissimilarity in closed form, so this is not a `Problem` for
    the exact engine. Attributes that both have have the same names.

    Attributes
    ----------
    samples : array, (n, d)
        The samples of all clients, one client after another.
    starts : array of int, (N + 1,)
        Index of each client's first sample, followed by the total number of samples.
    ridge : float
        Coefficient of the penalty, positive.
    alpha : array, (N,)
        Target weights.
    """

    samples: NDArray[np.floating]
    starts: NDArray[np.intp]
    ridge: float
    alpha: FloatArray

    def _set(
        self,
        data: Sequence[NDArray[np.floating]],
        ridge: float,
        target_weights: ArrayLike | None,
        **further: Any,
    ) -> None:
        """Set the fields from each client's checked samples, and ``further`` fields unchanged."""
        weights = checked_target_weights(target_weights, len(data))
        fields = {
            "samples": read_only(np.concatenate(data)),
            "starts": np.cumsum([0, *(len(part) for part in data)]),
            "ridge": validation.positive("ridge", ridge),
            "alpha": weights_or_uniform(weights, len(data)),
            **further,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        return int(self.starts.size - 1)

    @property
    def sizes(self) -> NDArray[np.intp]:
        """(N,) how many samples each client has."""
        return np.diff(self.starts)

    @property
    def sample_weights(self) -> FloatArray:
        """(n,) ``alpha_i / n_i`` of every sample: F is the sum of losses with these weights."""
        return np.repeat(self.alpha / self.sizes, self.sizes)

    def rows_of(self, client: int) -> slice:
        """Return the slice of a client's samples."""
        return slice(int(self.starts[client]), int(self.starts[client + 1]))

    @property
    @abstractmethod
    def x_star(self) -> FloatArray:
        """(dim,) minimiser of F."""

    @cached_property
    def F_star(self) -> float:
        """The minimum of F: its value at `x_star`."""
        return float(self.loss(self.x_star))

    def loss(self, x: FloatArray) -> FloatArray:
        """F at points (..., dim)."""
        return np.asarray(self.client_losses(x) @ self.alpha)

    @abstractmethod
    def client_losses(self, x: FloatArray) -> FloatArray:
        """``F_i(x)`` of every client, (..., N), at points (..., dim)."""


def check_shapes(data: Sequence[NDArray[np.generic]]) -> None:
    """Raise ValueError unless there is a client and all samples are (n_i, d) with the same d."""
    if not data:
        raise ValueError("features must hold the data of at least one client, got none")
    for client, part in enumerate(data):
        if part.ndim != 2 or part.size == 0 or part.shape[1] != data[0].shape[1]:
            raise ValueError(
                f"features must be (n_i, d) with n_i, d >= 1 and the same d for each client, "
                f"got {part.shape} for client {client}"
            )


def check_label_shapes(marks: Sequence[NDArray[np.generic]], sizes: Sequence[int]) -> None:
    """Raise ValueError unless each client has one label per sample."""
    shapes, wanted = [part.shape for part in marks], [(size,) for size in sizes]
    if shapes != wanted:
        raise ValueError(f"labels must be one per sample, of shapes {wanted}, got {shapes}")


def checked_features(features: Sequence[ArrayLike]) -> list[NDArray[np.floating]]:
    """Return each client's samples (n_i, d), as float32 if all of them are, else as float64."""
    validation.instance_of("features", features, Iterable, "an array per client")
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
    validation.instance_of("labels", labels, Iterable, "an array per client")
    marks = [np.asarray(part) for part in labels]
    check_label_shapes(marks, sizes)
    for client, part in enumerate(marks):
        if part.dtype.kind not in "iu" or part.min() < 0 or part.max() >= n_classes:
            raise ValueError(
                f"labels must be whole numbers 0 .. {n_classes - 1}, got others for client {client}"
            )
    return [part.astype(np.intp) for part in marks]
