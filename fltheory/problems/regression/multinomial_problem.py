"""Multinomial logistic regression with a ridge penalty, each client with its own data.

The minimiser of a `MultinomialProblem` is found by Newton's method with conjugate gradients. The
Hessian, which has (C (d + 1))^2 entries, is never formed. Conjugate gradients are preconditioned by
the matrix with one block for each class, ``mean(p_c (1 - p_c)) G + ridge``, where G holds the
data's second moments.

The result is certified independently: F is strongly convex with the ridge as its constant, so ``||x
- x*|| <= ||grad F(x)|| / ridge``. This gradient is computed again in extended precision, with a
bound on its rounding error.

The module also bounds the curvature of the clients of a `MultinomialProblem` on a ball.

The quantity ``v' (diag(p) - p p') v`` is a variance under p. Along a change u of the logits, its
derivative is at most ``max u - min u <= sqrt(2) ||u||`` times the variance itself. So on a ball of
radius rho a sample's Hessian grows by at most ``exp(sqrt(2) rho ||(a, 1)||)``, and never beyond
1/2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fltheory.problems.regression.multinomial_losses import (
    MultinomialLosses,
    probabilities,
    with_intercept,
)
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_EXTENDED = np.longdouble
_TOLERANCE = 1e-9
_MOST_NEWTON_STEPS = 60
_MOST_INNER_STEPS = 1000

Operator = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Optimum(ReadOnlyArrays):
    """A point near the minimiser, with a proved bound on its distance.

    Attributes
    ----------
    x : array, (dim,)
    gradient_norm : float
        Upper bound on ``||grad F(x)||``, including rounding.
    distance : float
        Upper bound on ``||x - x*||``: gradient_norm over the ridge.
    excess_loss : float
        Upper bound on ``F(x) - F*``: gradient_norm^2 over twice the ridge.
    """

    x: FloatArray
    gradient_norm: float
    distance: float
    excess_loss: float


def minimise(problem: MultinomialLosses) -> Optimum:
    """Return the minimiser, proved to be within 1e-8 of the true one.

    Raises
    ------
    ArithmeticError
        If the proved bound exceeds 1e-8, because the ridge is too small for the data.
    """
    x = _newton(problem, goal=_TOLERANCE * problem.ridge)
    found = certify(problem, x)
    if found.distance > 10 * _TOLERANCE:
        raise ArithmeticError(
            f"the optimum must be known to within {10 * _TOLERANCE:.3g}, got a guarantee of "
            f"{found.distance:.3g}: ridge {problem.ridge:.3g} is small for these data"
        )
    return found


def certify(problem: MultinomialLosses, x: FloatArray) -> Optimum:
    """Bound the distance of a point from the minimiser, including rounding errors.

    The gradient is summed in NumPy's extended precision, with unit roundoff u. To first order, the
    error of a logit is at most ``(d + 2) u (|W| |a| + |b|)``, that of a probability vector is at
    most as large in norm, and that of a sum of n terms is at most n u times the sum of their
    absolute values. The norm of the gradient is taken in float64.
    """
    unit = float(np.finfo(_EXTENDED).eps)
    point: NDArray[Any] = x.astype(_EXTENDED)[None]
    total = np.zeros((problem.n_classes, problem.n_features + 1), _EXTENDED)
    error = 0.0
    for client, rows in problem.blocks():
        weight = _EXTENDED(problem.alpha[client]) / int(problem.sizes[client])
        samples = with_intercept(problem.samples[rows].astype(_EXTENDED))
        logits = problem.logits(point, rows)[:, 0]
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        pull = powers / powers.sum(axis=1, keepdims=True)
        pull[np.arange(len(pull)), problem.labels[rows]] -= 1
        total += weight * (pull.T @ samples)
        error += float(weight) * _rounding(problem, x, samples.astype(np.float64))
    gradient = np.concatenate([total[:, :-1].ravel(), total[:, -1]]) + problem.ridge * point[0]
    rounding = unit * (error + problem.ridge * float(np.linalg.norm(x)))
    norm = float(np.linalg.norm(gradient.astype(np.float64))) + rounding
    norm *= 1 + (problem.dim + 4) * float(np.finfo(np.float64).eps)
    return Optimum(x, norm, norm / problem.ridge, norm**2 / (2 * problem.ridge))


def _rounding(problem: MultinomialLosses, x: FloatArray, samples: FloatArray) -> float:
    """Return the sum over samples of a bound on their gradients' errors, in units of u."""
    weights, intercepts = problem.split(abs(x)[None])
    both = np.concatenate([weights[0], intercepts[0][:, None]], axis=1)
    logit_errors = (problem.n_features + 2) * np.linalg.norm(abs(samples) @ both.T, axis=1)
    summed = len(problem.samples) + 4 * problem.n_classes
    # A pull has norm at most sqrt(2), and its error is at most that of the logits.
    return float(np.linalg.norm(samples, axis=1) @ (logit_errors + 1.5 * summed))


def _newton(problem: MultinomialLosses, goal: float) -> FloatArray:
    """Take Newton steps until the norm of the gradient is below ``goal``.

    Steps are halved until the norm falls. The direction lowers it for any convex loss. Near the
    minimum, norms can still be compared when losses differ only in their last digits.
    """
    spectrum = _Spectrum(problem)
    x = np.zeros(problem.dim)
    gradient = problem.gradient(x[None])[0]
    for _ in range(_MOST_NEWTON_STEPS):
        norm = float(np.linalg.norm(gradient))
        if norm <= goal:
            break
        hessian = Hessian(problem, x)
        accuracy = max(min(0.1, norm), goal / (2 * norm))
        direction = _solve(hessian, spectrum.preconditioner(hessian), gradient, accuracy * norm)
        step = 1.0
        while True:
            trial = x - step * direction
            trial_gradient = problem.gradient(trial[None])[0]
            if np.linalg.norm(trial_gradient) <= (1 - step / 4) * norm or step < _TOLERANCE:
                break
            step /= 2
        if np.linalg.norm(trial_gradient) >= norm:
            break
        x, gradient = trial, trial_gradient
    return x


class Hessian:
    """Products with the Hessian of F at one point; points are (dim,)."""

    def __init__(self, problem: MultinomialLosses, x: FloatArray) -> None:
        self._problem = problem
        self._chances = [
            probabilities(problem.logits(x[None], rows)[:, 0]) for _, rows in problem.blocks()
        ]

    def __call__(self, v: FloatArray) -> FloatArray:
        """Return the Hessian times a point."""
        problem = self._problem
        total = np.zeros((problem.n_classes, problem.n_features + 1))
        for (client, rows), p in zip(problem.blocks(), self._chances, strict=True):
            samples = problem.samples[rows].astype(np.float64)
            change = p * problem.logits(v[None], rows)[:, 0]
            change -= p * change.sum(axis=1, keepdims=True)
            change *= problem.alpha[client] / problem.sizes[client]
            total[:, :-1] += change.T @ samples
            total[:, -1] += change.sum(axis=0)
        return np.concatenate([total[:, :-1].ravel(), total[:, -1]]) + problem.ridge * v

    @property
    def class_weights(self) -> FloatArray:
        """(C,) the weighted mean of ``p_c (1 - p_c)``."""
        problem = self._problem
        total = np.zeros(problem.n_classes)
        for (client, _), p in zip(problem.blocks(), self._chances, strict=True):
            total += problem.alpha[client] / problem.sizes[client] * (p * (1 - p)).sum(axis=0)
        return total


class _Spectrum:
    """Eigenvalues and eigenvectors of the data's second moments."""

    def __init__(self, problem: MultinomialLosses) -> None:
        from scipy.linalg import eigh

        self._problem = problem
        gram = sum(
            weight * problem.gram(client) for client, weight in enumerate(problem.alpha.tolist())
        )
        self._values, self._vectors = eigh(gram)

    def preconditioner(self, hessian: Hessian) -> Operator:
        """Return the inverse of the class-by-class approximation to a Hessian."""
        problem, vectors = self._problem, self._vectors
        scales = hessian.class_weights[:, None] * np.maximum(self._values, 0.0) + problem.ridge

        def solve(v: FloatArray) -> FloatArray:
            weights, intercepts = problem.split(v[None])
            both = np.concatenate([weights[0], intercepts[0][:, None]], axis=1)
            solved = (both @ vectors / scales) @ vectors.T
            return np.concatenate([solved[:, :-1].ravel(), solved[:, -1]])

        return solve


def _solve(matrix: Operator, inverse: Operator, right: FloatArray, goal: float) -> FloatArray:
    """Solve ``matrix x = right`` by preconditioned conjugate gradients to residual ``goal``."""
    x, residual = np.zeros_like(right), right.copy()
    improved = inverse(residual)
    direction, slope = improved.copy(), float(residual @ improved)
    for _ in range(_MOST_INNER_STEPS):
        if np.linalg.norm(residual) <= goal:
            break
        product = matrix(direction)
        length = slope / float(direction @ product)
        x += length * direction
        residual -= length * product
        improved = inverse(residual)
        previous, slope = slope, float(residual @ improved)
        direction = improved + slope / previous * direction
    return x


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MultinomialProblem(MultinomialLosses):
    """``F_i(W, b) = mean_j f_ij(W, b) + ridge/2 ||(W, b)||^2`` over client i's samples.

    A point x is W, row by row, followed by b: the order of the parameters of a linear layer in
    torch.

    Parameters
    ----------
    features : sequence of arrays (n_i, d)
        a, client by client; float32 is kept in storage, and computations are in float64.
    labels : sequence of arrays of int (n_i,)
        y, between 0 and ``n_classes - 1``.
    n_classes : int
        C, at least 2.
    ridge : float
        Coefficient of the penalty, positive; the intercept b is penalised as well.
    target_weights : array, (N,), optional
        alpha; uniform by default.

    Raises
    ------
    ValueError
        If the shapes of the arrays do not match, a client has no data, a label is not a class, or
        the ridge is not positive.

    Examples
    --------
    >>> found = MultinomialProblem([[[1.0], [-1.0]]], [[1, 0]], n_classes=2, ridge=0.1)
    >>> found.n_clients, found.dim
    (1, 4)
    """

    @cached_property
    def optimum(self) -> Optimum:
        """The minimiser of F, certified."""
        return minimise(self)

    @property
    def x_star(self) -> FloatArray:
        """(dim,) minimiser of F, to within ``optimum.distance``."""
        return self.optimum.x


_MOST = 0.5


def curvature_bound(problem: MultinomialLosses, centre: FloatArray, radius: float) -> float:
    """Bound the curvature of every client on a ball.

    Parameters
    ----------
    problem : MultinomialLosses
    centre : array, (dim,)
    radius : float

    Returns
    -------
    float
        At least ``lambda_max`` of every client's Hessian at any point of the ball, and at most
        ``problem.L``.
    """
    from scipy.linalg import eigvalsh

    size = problem.n_features + 1
    grams = np.zeros((problem.n_clients, size, size))
    for client, rows in problem.blocks():
        samples = with_intercept(problem.samples[rows].astype(np.float64))
        largest = _largest_eigenvalues(probabilities(problem.logits(centre[None], rows)[:, 0]))
        reach = math.sqrt(2) * radius * np.linalg.norm(samples, axis=1)
        grown = np.minimum(_MOST, largest * np.exp(np.minimum(reach, 700.0)))
        grams[client] += (samples * grown[:, None]).T @ samples / problem.sizes[client]
    last = size - 1
    found = [float(eigvalsh(gram, subset_by_index=[last, last])[0]) for gram in grams]
    return min(max(found) + problem.ridge, problem.L)


def curvature_at(problem: MultinomialLosses, x: FloatArray) -> float:
    """Return a lower bound on the largest curvature of any client at a point, tight to 1e-6.

    Lanczos' method on products with the Hessians never exceeds the true value.
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    shape = (problem.dim, problem.dim)
    found = []
    for client in range(problem.n_clients):
        hessian = Hessian(problem.of_client(client), x)
        operator = LinearOperator(shape, matvec=hessian, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(problem.dim)
        (value,) = eigsh(operator, k=1, which="LA", tol=1e-6, v0=start, return_eigenvectors=False)
        found.append(float(value))
    return max(found)


def _largest_eigenvalues(p: FloatArray) -> FloatArray:
    """Return the largest eigenvalues of ``diag(p) - p p'`` for probabilities (n, C)."""
    matrices = -p[:, :, None] * p[:, None, :]
    places = np.arange(p.shape[1])
    matrices[:, places, places] += p
    return np.asarray(np.linalg.eigvalsh(matrices)[:, -1], dtype=np.float64)
