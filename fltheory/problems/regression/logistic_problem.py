"""Binary logistic regression with a ridge penalty, each client with its own data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fltheory import validation
from fltheory.problems.regression.sample_problem import (
    SampleProblem,
    check_label_shapes,
    check_shapes,
)
from fltheory.read_only import read_only
from fltheory.validation import ClientIndices, FloatArray

_TOLERANCE = 1e-12
_MOST_STEPS = 200


@dataclass(frozen=True, eq=False)
class LogisticProblem(SampleProblem):
    """``F_i(x) = mean_j log(1 + exp(-s_ij <x, a_ij>)) + ridge/2 ||x||^2`` over client i's data.

    ``s = 2 y - 1`` for labels y. There is no intercept; add a constant feature to have one.

    Parameters
    ----------
    features : sequence of arrays (n_i, d)
        a, client by client; or one array (N, n, d).
    labels : sequence of arrays (n_i,), of 0 and 1
        y.
    ridge : float
        Coefficient of the penalty, positive.
    target_weights : array, (N,), optional
        alpha; uniform by default.

    Raises
    ------
    ValueError
        If the shapes of the arrays do not match, a client has no data, a label is neither 0 nor 1,
        or the ridge is not positive.

    Examples
    --------
    >>> found = LogisticProblem([[[1.0], [-1.0]]], [[1, 0]], ridge=0.1)
    >>> float(found.x_star[0]) > 0, found.n_clients
    (True, 1)
    """

    samples: FloatArray
    signs: FloatArray
    starts: NDArray[np.intp]
    ridge: float
    alpha: FloatArray

    def __init__(
        self,
        features: Sequence[ArrayLike] | FloatArray,
        labels: Sequence[ArrayLike] | NDArray[np.generic],
        *,
        ridge: float,
        target_weights: ArrayLike | None = None,
    ) -> None:
        data = _checked_features(features)
        marks = _checked_labels(labels, [len(part) for part in data])
        self._set(data, ridge, target_weights, signs=read_only(2 * np.concatenate(marks) - 1))

    def __repr__(self) -> str:
        return (
            f"LogisticProblem({self.n_clients} clients, dim {self.dim}, "
            f"{len(self.samples)} samples, ridge {self.ridge})"
        )

    @property
    def dim(self) -> int:
        """d, the dimension of the model."""
        return int(self.samples.shape[1])

    @cached_property
    def L(self) -> float:
        """Smoothness of every client: ``max_i lambda_max(A_i' A_i / n_i) / 4 + ridge``.

        The sigmoid's slope is at most 1/4 and is 1/4 for every sample at x = 0, so the
        supremum is attained there.
        """
        largest = max(
            np.linalg.norm(self._of(client)[0], 2) ** 2 / size
            for client, size in enumerate(self.sizes.tolist())
        )
        return float(largest / 4 + self.ridge)

    @property
    def mu(self) -> float:
        """The smallest curvature of any client over all points: the ridge, whatever the data.

        Far out in a direction that is not orthogonal to any sample, the sigmoids' slopes vanish, so
        no larger number is valid. If the samples span the space, the infimum is not attained.
        """
        return self.ridge

    @cached_property
    def x_star(self) -> FloatArray:
        """(d,) minimiser of F, by Newton's method, to a gradient of 1e-12 on the data's scale."""
        return self._minimiser(self.samples, self.signs, self.sample_weights)

    @cached_property
    def client_optima(self) -> FloatArray:
        """(N, d) minimiser of every client's loss."""
        optima = []
        for client in range(self.n_clients):
            samples, signs = self._of(client)
            weights = np.full(signs.size, 1 / signs.size)
            optima.append(self._minimiser(samples, signs, weights))
        return np.array(optima)

    @cached_property
    def client_minima(self) -> FloatArray:
        """(N,) ``F_i^*``, the minimum of every client's loss."""
        return np.asarray(np.diagonal(self.client_losses(self.client_optima)).copy())

    def excess_loss(self, x: FloatArray) -> FloatArray:
        """``F(x) - F*`` at points (..., d)."""
        return np.asarray(self.loss(x) - self.F_star)

    def gradient(self, x: FloatArray) -> FloatArray:
        """``grad F`` at points (..., d)."""
        from scipy.special import expit

        pull = self.signs * expit(-(x @ self.samples.T) * self.signs) * self.sample_weights
        return np.asarray(self.ridge * x - pull @ self.samples)

    def client_gradients(self, x: FloatArray, clients: ClientIndices) -> FloatArray:
        """``grad F_i(x_t)`` with ``i = clients[t]``, for points (T, d)."""
        from scipy.special import expit

        gradients = self.ridge * x
        for client in np.unique(clients).tolist():
            rows = np.flatnonzero(clients == client)
            samples, signs = self._of(client)
            pull = signs * expit(-(x[rows] @ samples.T) * signs)
            gradients[rows] -= pull @ samples / signs.size
        return gradients

    def client_losses(self, x: FloatArray) -> FloatArray:
        """``F_i(x)`` of every client, (..., N), at points (..., d)."""
        margins = (x @ self.samples.T) * self.signs
        sums = np.add.reduceat(np.logaddexp(0.0, -margins), self.starts[:-1], axis=-1)
        penalty = 0.5 * self.ridge * np.square(x).sum(axis=-1, keepdims=True)
        return np.asarray(sums / self.sizes + penalty)

    def accuracy(self, x: FloatArray) -> FloatArray:
        """Share of correct signs of ``<x, a>`` at points (..., d), with clients weighted by alpha.

        A product of exactly zero counts as label 0.
        """
        right = (x @ self.samples.T > 0) == (self.signs > 0)
        shares = np.add.reduceat(right, self.starts[:-1], axis=-1, dtype=np.int64) / self.sizes
        return np.asarray(shares @ self.alpha)

    def _of(self, client: int) -> tuple[FloatArray, FloatArray]:
        rows = self.rows_of(client)
        return self.samples[rows], self.signs[rows]

    def _minimiser(self, samples: FloatArray, signs: FloatArray, weights: FloatArray) -> FloatArray:
        """Minimise ``sum_j weights_j log(1 + exp(-s_j <x, a_j>)) + ridge/2 ||x||^2``.

        Newton steps are halved until the norm of the gradient falls. The direction lowers this norm
        for any convex loss. Near the minimum, norms can still be compared when losses differ only
        in their last digits.
        """
        from scipy.special import expit

        goal = _TOLERANCE * max(1.0, float(np.linalg.norm(samples, axis=1).max()))

        def gradient_at(x: FloatArray) -> FloatArray:
            pull = signs * expit(-(samples @ x) * signs) * weights
            return np.asarray(self.ridge * x - pull @ samples)

        x = np.zeros(samples.shape[1])
        gradient = gradient_at(x)
        for _ in range(_MOST_STEPS):
            norm = np.linalg.norm(gradient)
            if norm <= goal:
                return x
            chance = expit(samples @ x)
            slopes = weights * chance * (1 - chance)
            hessian = (samples.T * slopes) @ samples + self.ridge * np.eye(x.size)
            direction, step = np.linalg.solve(hessian, gradient), 1.0
            while True:
                trial = x - step * direction
                gradient = gradient_at(trial)
                if np.linalg.norm(gradient) <= (1 - step / 4) * norm or step < _TOLERANCE:
                    break
                step /= 2
            x = trial
        raise ArithmeticError(
            f"Newton's method left a gradient of norm {norm:.3g}, wanted {goal:.3g}"
        )


def _checked_features(features: Sequence[ArrayLike] | FloatArray) -> list[FloatArray]:
    validation.instance_of("features", features, Iterable, "an array per client")
    data = [
        validation.real_array("features", part, shape="(n_i, d) for each client")
        for part in features
    ]
    check_shapes(data)
    return data


def _checked_labels(
    labels: Sequence[ArrayLike] | NDArray[np.generic], sizes: list[int]
) -> list[FloatArray]:
    validation.instance_of("labels", labels, Iterable, "an array per client")
    marks = [validation.real_array("labels", part, shape="(n_i,)", flags=True) for part in labels]
    check_label_shapes(marks, sizes)
    for client, part in enumerate(marks):
        if not np.isin(part, (0.0, 1.0)).all():
            raise ValueError(f"labels must be 0 or 1, got others for client {client}")
    return marks
