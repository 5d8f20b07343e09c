"""Losses of multinomial logistic regression with a ridge penalty, each client with its own data.

A sample ``a`` of class y costs ``log(sum_c exp(z_c)) - z_y`` with logits ``z = W a + b``. Its
gradient in (W, b) is ``(p - e_y) (a, 1)'`` with p the softmax of z, and its Hessian is the
Kronecker product of ``diag(p) - p p'`` and ``(a, 1) (a, 1)'``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fltheory import validation
from fltheory.problems.regression.sample_problem import (
    SampleProblem,
    checked_features,
    checked_labels,
)
from fltheory.read_only import ReadOnlyArrays, read_only
from fltheory.validation import FloatArray

_ROWS = 2048


@dataclass(frozen=True)
class ClientSums(ReadOnlyArrays):
    """The results of one pass over all data at k points.

    Attributes
    ----------
    losses : array, (k, N)
        ``F_i(x)``.
    gradients : array, (k, N, dim)
        ``grad F_i(x)``.
    variances : array, (k, N)
        ``mean_j ||grad f_ij(x) - grad F_i(x)||^2`` over client i's samples: the variance of the
        gradient of one random sample.
    """

    losses: FloatArray
    gradients: FloatArray
    variances: FloatArray


@dataclass(frozen=True, eq=False)
class MultinomialLosses(SampleProblem):
    """The losses of a `MultinomialProblem`, with or without a known minimiser."""

    samples: NDArray[np.floating]
    labels: NDArray[np.intp]
    starts: NDArray[np.intp]
    n_classes: int
    ridge: float
    alpha: FloatArray

    def __init__(
        self,
        features: Sequence[ArrayLike],
        labels: Sequence[ArrayLike],
        *,
        n_classes: int,
        ridge: float,
        target_weights: ArrayLike | None = None,
    ) -> None:
        data = checked_features(features)
        n_classes = validation.whole_number("n_classes", n_classes, at_least=2)
        marks = checked_labels(labels, [len(part) for part in data], n_classes)
        self._set(
            data,
            ridge,
            target_weights,
            labels=read_only(np.concatenate(marks)),
            n_classes=n_classes,
        )

    def __repr__(self) -> str:
        return (
            f"MultinomialProblem({self.n_clients} clients, {self.n_classes} classes, "
            f"dim {self.dim}, {len(self.samples)} samples, ridge {self.ridge})"
        )

    @property
    def n_features(self) -> int:
        """d, the size of a sample."""
        return int(self.samples.shape[1])

    @property
    def dim(self) -> int:
        """C (d + 1), the size of a point."""
        return self.n_classes * (self.n_features + 1)

    @cached_property
    def smoothness(self) -> FloatArray:
        """(N,) ``lambda_max(sum_j (a_j, 1) (a_j, 1)' / n_i) / 2 + ridge`` of every client.

        The largest eigenvalue of ``diag(p) - p p'`` is at most 1/2, attained at p = (1/2, 1/2, 0,
        ...). With intercepts (t, t, -t, ...), the p of every sample tends to this point as t grows,
        so no smaller constant is valid.
        """
        from scipy.linalg import eigvalsh

        largest = []
        for client in range(self.n_clients):
            gram = self.gram(client)
            last = len(gram) - 1
            largest.append(float(eigvalsh(gram, subset_by_index=[last, last])[0]))
        return np.array(largest) / 2 + self.ridge

    @cached_property
    def L(self) -> float:
        """Smoothness of every client: the largest of `smoothness`."""
        return float(self.smoothness.max())

    @property
    def mu(self) -> float:
        """The smallest curvature of any client: the ridge, at every point and whatever the data.

        Adding one vector to all rows of W changes no probability, so the data have no curvature
        in that direction.
        """
        return self.ridge

    def gradient(self, x: FloatArray) -> FloatArray:
        """``grad F`` at points (k, dim)."""
        return np.einsum("i,kia->ka", self.alpha, self.client_sums(x).gradients)

    def client_losses(self, x: FloatArray) -> FloatArray:
        """``F_i(x)`` of every client, (..., N), at points (..., dim)."""
        from scipy.special import log_softmax

        points = np.asarray(x, dtype=np.float64).reshape(-1, self.dim)
        losses = np.zeros((len(points), self.n_clients))
        for client, rows in self.blocks():
            logs = log_softmax(self.logits(points, rows), axis=2)
            losses[:, client] -= self._of_label(logs, rows).sum(axis=0)
        losses = losses / self.sizes + 0.5 * self.ridge * np.square(points).sum(axis=1)[:, None]
        return losses.reshape(*np.shape(x)[:-1], self.n_clients)

    def client_sums(self, x: FloatArray) -> ClientSums:
        """Return losses, gradients and variances of all clients at points (k, dim)."""
        from scipy.special import log_softmax

        points = np.asarray(x, dtype=np.float64)
        shape = (len(points), self.n_clients)
        losses, squares = np.zeros(shape), np.zeros(shape)
        gradients = np.zeros((*shape, self.n_classes, self.n_features + 1))
        for client, rows in self.blocks():
            samples = self.samples[rows].astype(np.float64)
            logs = log_softmax(self.logits(points, rows), axis=2)
            losses[:, client] -= self._of_label(logs, rows).sum(axis=0)
            pull = np.exp(logs)
            pull[np.arange(len(samples)), :, self.labels[rows]] -= 1
            summed = pull.reshape(len(samples), -1).T @ samples
            gradients[:, client, :, :-1] += summed.reshape(len(points), self.n_classes, -1)
            gradients[:, client, :, -1] += pull.sum(axis=0)
            lengths = 1 + np.square(samples).sum(axis=1)
            squares[:, client] += lengths @ np.square(pull).sum(axis=2)
        gradients /= self.sizes[:, None, None]
        means = np.square(gradients).sum(axis=(2, 3))
        return ClientSums(
            losses / self.sizes + 0.5 * self.ridge * np.square(points).sum(axis=1)[:, None],
            read_only(_flat(gradients) + self.ridge * points[:, None]),
            np.maximum(squares / self.sizes - means, 0.0),
        )

    def accuracy(self, x: FloatArray) -> FloatArray:
        """Share of samples classified correctly, averaged over clients with weights alpha."""
        points = np.asarray(x, dtype=np.float64).reshape(-1, self.dim)
        right = np.zeros((len(points), self.n_clients))
        for client, rows in self.blocks():
            chosen = self.logits(points, rows).argmax(axis=2)
            right[:, client] += (chosen == self.labels[rows][:, None]).sum(axis=0)
        return np.asarray(right / self.sizes @ self.alpha).reshape(np.shape(x)[:-1])

    def is_same_as(self, other: MultinomialLosses) -> bool:
        """Return whether both have the same clients, samples and constants."""
        numbers = (self.n_classes, self.ridge) == (other.n_classes, other.ridge)
        pairs = (
            (self.starts, other.starts),
            (self.alpha, other.alpha),
            (self.labels, other.labels),
            (self.samples, other.samples),
        )
        return numbers and all(np.array_equal(mine, theirs) for mine, theirs in pairs)

    def of_client(self, client: int) -> Self:
        """Return the problem of a single client."""
        rows = self.rows_of(client)
        return type(self)(
            [self.samples[rows]], [self.labels[rows]], n_classes=self.n_classes, ridge=self.ridge
        )

    def gram(self, client: int) -> FloatArray:
        """Return ``sum_j (a_j, 1) (a_j, 1)' / n_i`` of a client, (d + 1, d + 1)."""
        total = np.zeros((self.n_features + 1, self.n_features + 1))
        for rows in _blocks(self.rows_of(client)):
            samples = with_intercept(self.samples[rows].astype(np.float64))
            total += samples.T @ samples
        return total / self.sizes[client]

    def blocks(self) -> Iterator[tuple[int, slice]]:
        """Yield clients with slices of their samples, small enough to hold in float64."""
        for client in range(self.n_clients):
            for rows in _blocks(self.rows_of(client)):
                yield client, rows

    def logits(self, points: FloatArray, rows: slice) -> FloatArray:
        """Return the logits z of a slice of samples at points (k, dim), (samples, k, C)."""
        weights, intercepts = self.split(points)
        samples = self.samples[rows].astype(points.dtype)
        products = samples @ weights.reshape(-1, self.n_features).T
        return np.asarray(products.reshape(len(samples), *intercepts.shape) + intercepts)

    def split(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return W (k, C, d) and b (k, C) of points (k, dim)."""
        end = self.n_classes * self.n_features
        return points[:, :end].reshape(-1, self.n_classes, self.n_features), points[:, end:]

    def _of_label(self, logs: FloatArray, rows: slice) -> FloatArray:
        return logs[np.arange(len(logs)), :, self.labels[rows]]


def with_intercept(samples: FloatArray) -> FloatArray:
    """Return (a, 1) for every sample."""
    return np.concatenate([samples, np.ones((len(samples), 1), samples.dtype)], axis=1)


def probabilities(logits: FloatArray) -> FloatArray:
    """Return the softmax over the last axis."""
    from scipy.special import softmax

    return np.asarray(softmax(logits, axis=-1))


def _flat(gradients: FloatArray) -> FloatArray:
    """Flatten gradients in (W, b), (..., C, d + 1), into points (..., dim)."""
    weights = gradients[..., :-1].reshape(*gradients.shape[:-2], -1)
    return np.concatenate([weights, gradients[..., -1]], axis=-1)


def _blocks(rows: slice) -> Iterator[slice]:
    for start in range(rows.start, rows.stop, _ROWS):
        yield slice(start, min(start + _ROWS, rows.stop))
