"""How curved the clients of a `MultinomialProblem` are on a ball, not everywhere.

Along a change u of the logits, ``v' (diag(p) - p p') v`` is a variance under p whose derivative is
at most ``max u - min u <= sqrt(2) ||u||`` times itself. So on a ball of radius rho a sample's
Hessian grows by at most ``exp(sqrt(2) rho ||(a, 1)||)``, and never beyond 1/2.
"""

from __future__ import annotations

import math

import numpy as np

from fltheory.problems.regression.multinomial_losses import (
    MultinomialLosses,
    probabilities,
    with_intercept,
)
from fltheory.problems.regression.multinomial_optimum import Hessian
from fltheory.validation import FloatArray

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
    """Return the largest curvature of any client at a point, from below, to a millionth.

    By Lanczos' method on products with the Hessians, whose values never exceed the true one.
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
    """Return those of ``diag(p) - p p'`` for probabilities (n, C)."""
    matrices = -p[:, :, None] * p[:, None, :]
    places = np.arange(p.shape[1])
    matrices[:, places, places] += p
    return np.asarray(np.linalg.eigvalsh(matrices)[:, -1], dtype=np.float64)
